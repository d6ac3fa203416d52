import type { ImportResult } from './document/import-file.ts';

/** Returns the result of an import as text: a line for the file, and for each kind in it. */
export function resultText(result: ImportResult): string {
  const moved = result.shiftedDays === 0 ? '' : `, its dates moved by ${result.shiftedDays} days`;
  const lines = [`${result.fileName}: imported into ${result.region}${moved}`];
  for (const [kind, counts] of Object.entries(result.counts)) {
    const parts = Object.entries(counts).flatMap(([change, rows]) => (rows === 0 ? [] : `${rows} ${change}`));
    if (parts.length > 0) lines.push(`  ${kind.padEnd(17)}${parts.join(', ')}`);
  }
  return `${lines.join('\n')}\n`;
}
