/**
 * Text for terminals. Values come from organizations and receivers, so control characters, which a
 * terminal would execute, and those that change the order of a text or hide are shown by name.
 */
import { printable } from '#runtime/command-line.ts';

const shown = (value: unknown): string =>
  value === null || value === undefined || value === '' ? '-' : printable(String(value));

/** Returns rows under their headings, numbers to the right. `none` is the text for no rows. */
export function table(headings: string[], rows: unknown[][], none: string): string {
  if (rows.length === 0) return none;
  const cells = rows.map((row) => row.map(shown));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const isNumeric = headings.map((_, column) => rows.every((row) => typeof row[column] === 'number'));
  const line = (row: string[]) =>
    row
      .map((cell, column) =>
        isNumeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [line(headings), ...cells.map(line)].join('\n');
}

/** Returns names with their values, one per line. */
export function fields(pairs: Record<string, unknown>): string {
  const width = Math.max(...Object.keys(pairs).map((name) => name.length));
  return Object.entries(pairs)
    .map(([name, value]) => `${name.padEnd(width)}  ${shown(value)}`)
    .join('\n');
}
