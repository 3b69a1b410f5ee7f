/** One file of an image's folder; `path` is relative to it, with forward slashes. */
export interface RecipeFile {
  readonly path: string;
  readonly executable: boolean;
  readonly data: Buffer;
}
