import { delimiter, isAbsolute, join } from 'node:path';
import { access, constants } from 'node:fs/promises';
import { orUndefined } from '../../concurrency/failures.js';

/** How a notification of the operating system is made: a program and its arguments, without a shell. */
export interface Notice {
  readonly program: string;
  readonly args: readonly string[];
  /** Variables that the program reads from its environment. */
  readonly env: Readonly<Record<string, string>>;
}
const mostTitle = 100,
  mostText = 500;

/** One line without control characters, on which terminals and notification servers act. */
const oneLine = (text: string, most: number): string => {
  const plain = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, ' ').trim();
  return plain.length > most ? `${plain.slice(0, most - 1)}…` : plain;
};
/** Servers of freedesktop.org read the body as markup, and notify-send its backslashes as escapes. */
const asMarkup = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('\\', '\\\\');

const onMac = [
  'on run argv',
  'display notification (item 2 of argv) with title "DART Studio" subtitle (item 1 of argv)',
  'end run',
];
/** The words become text nodes of the toast's XML: they are neither code nor markup. */
const onWindows = [
  "$ErrorActionPreference = 'Stop'",
  '$null = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]',
  '$toast = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)',
  "$lines = $toast.GetElementsByTagName('text')",
  '$null = $lines.Item(0).AppendChild($toast.CreateTextNode($env:DART_STUDIO_NOTICE_TITLE))',
  '$null = $lines.Item(1).AppendChild($toast.CreateTextNode($env:DART_STUDIO_NOTICE_TEXT))',
  "$app = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'",
  '[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($app).Show([Windows.UI.Notifications.ToastNotification]::new($toast))',
].join('; ');

/** undefined: this platform has none that we know. Whatever title and text hold, they are only shown. Pure. */
export function noticeOf(platform: NodeJS.Platform, title: string, text: string): Notice | undefined {
  const head = oneLine(title, mostTitle),
    body = oneLine(text, mostText);
  switch (platform) {
    case 'linux':
    case 'freebsd':
    case 'openbsd':
      return { program: 'notify-send', args: ['--app-name=DART Studio', '--', head, asMarkup(body)], env: {} };
    case 'darwin':
      return { program: 'osascript', args: [...onMac.flatMap((l) => ['-e', l]), '--', head, body], env: {} };
    case 'win32':
      return {
        program: 'powershell.exe',
        args: ['-NoProfile', '-NonInteractive', '-WindowStyle', 'Hidden', '-Command', onWindows],
        env: { DART_STUDIO_NOTICE_TITLE: head, DART_STUDIO_NOTICE_TEXT: body },
      };
    default:
      return undefined;
  }
}

/** Path of a program of this name, in absolute folders of PATH alone. */
export async function onPath(program: string, path = process.env['PATH'] ?? ''): Promise<string | undefined> {
  for (const dir of path.split(delimiter).filter(isAbsolute)) {
    const file = join(dir, program),
      there = await orUndefined(
        access(file, constants.X_OK).then(() => file),
        'it may be in the next folder',
      );
    if (there) return there;
  }
  return undefined;
}
