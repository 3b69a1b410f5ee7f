/** The desktop image of a run that does not name one. */
export const DEFAULT_IMAGE = 'desk';

/** How a desktop image may be named: its folder in runtime/cluster/images, and part of a Docker tag. */
export const IMAGE_NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** The contents of a desktop image, as the check of task files sees them. */
export interface ImageContents {
  /** Applications, by the names task files use. */
  readonly apps: readonly string[];
  /** Programs that task files call and not every image has. */
  readonly programs: readonly string[];
  /** Key chords that start something, e.g. ctrl+alt+t a terminal. */
  readonly shortcuts?: readonly string[];
  /** Debian packages of the image. */
  readonly packages?: readonly string[];
  /** Whether the user may become root. */
  readonly root?: boolean;
  /** Desktops reach the live web. */
  readonly network?: boolean;
}

/** A desktop image as a list shows it. */
export interface ImageRow {
  readonly name: string;
  readonly title: string;
  readonly description: string;
}
