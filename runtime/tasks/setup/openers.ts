/** Which application opens a file, by its type: the first one installed wins. `app` is the name the task check uses. */
export interface Opener {
  readonly app: string;
  readonly program: string;
}

const office: readonly Opener[] = [
  { app: 'libreoffice', program: 'libreoffice' },
  { app: 'libreoffice', program: 'soffice' },
];
const types: readonly (readonly [extensions: string, openers: readonly Opener[]])[] = [
  // LibreOffice first where an image has it: OSWorld's tasks mean it.
  ['xlsx xls ods csv tsv gnumeric', [...office, { app: 'gnumeric', program: 'gnumeric' }]],
  ['docx doc odt rtf pptx ppt odp', office],
  [
    'pdf',
    [
      { app: 'pdf-viewer', program: 'evince' },
      { app: 'pdf-viewer', program: 'atril' },
      { app: 'pdf-viewer', program: 'xpdf' },
    ],
  ],
  ['mp4 mkv avi webm mp3 wav ogg flac m4a mov', [{ app: 'vlc', program: 'vlc' }]],
  [
    'png jpg jpeg gif bmp webp tif tiff svg',
    [
      { app: 'image-viewer', program: 'eog' },
      { app: 'image-viewer', program: 'gpicview' },
    ],
  ],
  ['xcf', [{ app: 'gimp', program: 'gimp' }]],
  [
    'html htm',
    [
      { app: 'chrome', program: 'google-chrome' },
      { app: 'chrome', program: 'chromium' },
    ],
  ],
];
const text: readonly Opener[] = [
  { app: 'gedit', program: 'gedit' },
  { app: 'mousepad', program: 'mousepad' },
];
const folder: readonly Opener[] = [
  { app: 'nautilus', program: 'nautilus' },
  { app: 'pcmanfm', program: 'pcmanfm' },
];

export function openersOf(path: string, directory = false): readonly Opener[] {
  if (directory) return folder;
  const ext = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? '';
  return types.find(([exts]) => exts.split(' ').includes(ext))?.[1] ?? text;
}
