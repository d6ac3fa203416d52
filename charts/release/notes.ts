/**
 * Returns the part of CHANGELOG.md about a version, and its date; null while it is not released.
 *
 * @throws Error when there is none.
 */
export function notesOf(changelog: string, version: string): { notes: string; date: string | null } {
  const parts = changelog.split(/^## /m).slice(1);
  const part = parts.find((one) => one.startsWith(`[${version}]`));
  if (part === undefined) throw new Error(`CHANGELOG.md says nothing about ${version}`);
  const [heading = '', ...lines] = part.split('\n');
  const date = / - (\d{4}-\d\d-\d\d)$/.exec(heading)?.[1] ?? null;
  const text = lines.join('\n').replace(/^\[[^\]]+\]: .*$/gm, '');
  return { notes: `${text.trim()}\n`, date };
}
