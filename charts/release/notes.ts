/**
 * Returns the part of CHANGELOG.md about a version, and its date; null while it is not released.
 *
 * @throws Error when there is none.
 */
export function getNotes(changelog: string, version: string): { notes: string; date: string | null } {
  const parts = changelog.split(/^## /m).slice(1);
  const part = parts.find((one) => one.startsWith(`[${version}]`));
  if (part === undefined) throw new Error(`CHANGELOG.md says nothing about ${version}`);
  const [heading = '', ...lines] = part.split('\n');
  const date = / - (\d{4}-\d\d-\d\d)$/.exec(heading)?.[1] ?? null;
  const text = lines.join('\n').replace(/^\[[^\]]+\]: .*$/gm, '');
  return { notes: `${text.trim()}\n`, date };
}

/**
 * Returns the version that a tag releases: the planned one, or a candidate for it, such as `0.1.0-rc.1`.
 *
 * @throws Error when the tag is neither.
 */
export function getTaggedVersion(tag: string | undefined, planned: string): string {
  const version = tag?.replace(/^v/, '') ?? '';
  if (tag === `v${version}` && version.replace(/-rc\.[1-9]\d*$/, '') === planned) return version;
  throw new Error(`the tag ${tag ?? '(none)'} is not v${planned} or v${planned}-rc.N; --dry-run builds without a tag`);
}
