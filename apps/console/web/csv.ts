/**
 * CSV by RFC 4180: fields in quotes, quotes doubled, lines ended by CR LF. People open it in a
 * spreadsheet, which runs a text that begins like a formula, and the texts of a log may come from
 * anyone.
 */

/** Characters that begin a formula, and their full-width forms, which some spreadsheets accept. */
const formulaSigns = '=+\\-@＝＋－＠';

/**
 * At the beginning of a field, after blanks that a spreadsheet may trim. A tab or line break there
 * is always neutralized.
 */
const atBeginning = new RegExp(`^(?=[\\t\\r\\n]|[\\s\\p{Cf}]*[${formulaSigns}])`, 'u');

/**
 * What a spreadsheet in another language may read as the end of a field, despite quotes, and the
 * sign after it, if there is one. The sign is optional, so that each run of blanks is matched once:
 * a pattern that fails at the end of a run tries again from each of its characters, which takes
 * quadratic time.
 */
const separatorAndSign = new RegExp(`([;|\\t\\r\\n][\\s\\p{Cf}"']*)([${formulaSigns}])?`, 'gu');

/**
 * Returns a field. An apostrophe before a formula makes it text; numbers and null stay as they are.
 */
export function csvField(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = value
    .replace(separatorAndSign, (run, separator, sign) => (sign === undefined ? run : `${separator}'${sign}`))
    .replace(atBeginning, "'");
  return `"${text.replaceAll('"', '""')}"`;
}

/** Returns a line with its end. */
export const csvLine = (values: readonly (string | number | null)[]): string => `${values.map(csvField).join(',')}\r\n`;

/**
 * Begins a file. With it, Excel reads the file as UTF-8 and not as the machine's old code page,
 * which would garble every accent. Programs read the encoding as `utf-8-sig`.
 */
export const byteOrderMark = '\uFEFF';
