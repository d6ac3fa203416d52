// cspell:ignore øłđðıς olddiσ
import { type RawBuilder, sql } from 'kysely';

/** Letters that are no letter with an accent, as they are also typed. */
const otherLetters: Readonly<Record<string, string>> = {
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  ı: 'i',
  ς: 'σ',
  æ: 'ae',
  œ: 'oe',
  ß: 'ss',
};
const otherLetter = new RegExp(`[${Object.keys(otherLetters).join('')}]`, 'g');

/** Returns a text without case and accents, as people type names on any keyboard: Pätzold, patzold. */
export const fold = (text: string): string =>
  text
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .replace(otherLetter, (letter) => otherLetters[letter] ?? letter);

/**
 * Does what `fold` does in SQL. The columns' "C" collation, which may be the database's too, has
 * lower case for ASCII alone.
 */
export const foldSql = (text: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`replace(replace(replace(translate(regexp_replace(normalize(lower(${text} collate "und-x-icu"), nfkd),
    '[\\u0300-\\u036f]', '', 'g'), 'øłđðıς', 'olddiσ'), 'æ', 'ae'), 'œ', 'oe'), 'ß', 'ss')`;

/** Matches a column that contains a text, both folded; `%` and `_` have no special meaning. */
export const contains = (column: string, text: string): RawBuilder<unknown> =>
  sql`strpos(${foldSql(sql.ref(column))}, ${foldSql(sql`${text.trim()}::text`)}) > 0`;
