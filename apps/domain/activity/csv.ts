/**
 * CSV as RFC 4180 has it: fields in quotes, quotes doubled, lines ended by CR LF. It is made for
 * people who open it in a spreadsheet, where a text that begins like a formula is one, and anybody
 * may have typed the texts of a log.
 */

/**
 * Signs that begin a formula, and their full-width forms, which some spreadsheets take for them.
 */
const formulaSigns = '=+\\-@＝＋－＠';

/**
 * At the beginning of a field, after blanks that a spreadsheet may trim. A tab or line break there
 * is neutralized whatever follows.
 */
const atBeginning = new RegExp(`^(?=[\\t\\r\\n]|[\\s\\p{Cf}]*[${formulaSigns}])`, 'u');

/**
 * What a spreadsheet of another language may take for the end of a field, quotes notwithstanding,
 * and the sign after it, if there is one. The sign is optional so that each run of blanks is
 * matched and passed once: a pattern that fails at the end of a run tries again from each of its
 * characters, which takes quadratic time.
 */
const separatorAndSign = new RegExp(`([;|\\t\\r\\n][\\s\\p{Cf}"']*)([${formulaSigns}])?`, 'gu');

/**
 * A field. An apostrophe before what would be a formula makes it text; numbers and null are written
 * as they are.
 */
export function csvField(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = value
    .replace(separatorAndSign, (run, separator, sign) => (sign === undefined ? run : `${separator}'${sign}`))
    .replace(atBeginning, "'");
  return `"${text.replaceAll('"', '""')}"`;
}

/** A line, its end included. */
export const csvLine = (values: readonly (string | number | null)[]): string => `${values.map(csvField).join(',')}\r\n`;

/**
 * Begins a file. Decision (2026-11-20): with it, Excel reads the file as UTF-8, which it otherwise
 * takes for the machine's old code page; programs know it as `utf-8-sig`, and leaving it out would
 * garble every accent for the people whom the file is for.
 */
export const byteOrderMark = '\uFEFF';
