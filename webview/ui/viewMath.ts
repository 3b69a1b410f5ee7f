/** Zoom and pan of a picture in a box; pure. A view maps picture pixel p to box pixel x + p * scale. */
export interface Size {
  readonly width: number;
  readonly height: number;
}
export interface View {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

export const minScale = 0.1,
  maxScale = 16;
/** Above this, single pixels matter and are shown as squares. */
export const pixelatedAbove = 2;

/** The whole picture, centred. Small screens grow to fill the box. */
export function fit(picture: Size, box: Size): View {
  const scale = clampScale(Math.min(box.width / picture.width, box.height / picture.height));
  return centre(picture, box, scale);
}
export function centre(picture: Size, box: Size, scale: number): View {
  return { scale, x: (box.width - picture.width * scale) / 2, y: (box.height - picture.height * scale) / 2 };
}
const clampScale = (s: number): number => (Number.isFinite(s) && s > 0 ? Math.max(minScale, Math.min(maxScale, s)) : 1);

/** Scales so that the point under `at` (box pixels) stays there. */
export function zoomAt(
  v: View,
  factor: number,
  at: { readonly x: number; readonly y: number },
  picture: Size,
  box: Size,
): View {
  const scale = clampScale(v.scale * factor),
    k = scale / v.scale;
  return keepInside({ scale, x: at.x - (at.x - v.x) * k, y: at.y - (at.y - v.y) * k }, picture, box);
}
export function pan(v: View, dx: number, dy: number, picture: Size, box: Size): View {
  return keepInside({ ...v, x: v.x + dx, y: v.y + dy }, picture, box);
}

/** A picture smaller than the box is centred; a larger one always covers it. */
export function keepInside(v: View, picture: Size, box: Size): View {
  const axis = (pos: number, len: number, room: number): number =>
    len <= room ? (room - len) / 2 : Math.max(room - len, Math.min(0, pos));
  return {
    scale: v.scale,
    x: axis(v.x, picture.width * v.scale, box.width),
    y: axis(v.y, picture.height * v.scale, box.height),
  };
}

/** Next step of a ladder of round zooms. */
const ladder = [0.1, 0.25, 0.33, 0.5, 0.67, 0.75, 1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16];
export function zoomStep(scale: number, direction: 1 | -1): number {
  const eps = 1e-3;
  return direction > 0
    ? (ladder.find((z) => z > scale + eps) ?? maxScale)
    : ([...ladder].reverse().find((z) => z < scale - eps) ?? minScale);
}
