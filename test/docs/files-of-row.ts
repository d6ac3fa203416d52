import path from 'node:path';

const folders = 'apps|charts|docs|lint|test|workflows';

/** Returns paths in backticks that begin with a top-level folder, without patterns and placeholders. */
export function listPaths(text: string): string[] {
  const found = text.matchAll(new RegExp(`\`((?:${folders})/[\\w./-]+)\``, 'g'));
  return [...found].map(([, file = '']) => file);
}

/**
 * Returns files in backticks of a table row or a sentence; a file without a top-level folder is in
 * the folder of the one before.
 */
export function filesOfRow(row: string): string[] {
  let folder = '';
  return [...row.matchAll(/`([\w./-]+\.(?:ts|lua))`/g)].map(([, name = '']) => {
    if (!listPaths(`\`${name}\``).length) return path.join(folder, name);
    folder = path.dirname(name);
    return name;
  });
}
