/**
 * Characters that could affect the text around them or hide: controls except line breaks and tabs,
 * formatting characters (right-to-left overrides, zero-width characters, tags), other line ends,
 * private-use characters, letters and symbols that show nothing (Hangul fillers, the empty Braille
 * pattern) except variation selectors. A run of one character is one match.
 */
export const unseenCharacters =
  /((?![\n\t]|\p{Variation_Selector})[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Default_Ignorable_Code_Point}\u2800])\1*/gu;

/** Returns the name of a run of one character: `U+202E`, and how often it repeats. */
export function nameCharacters(run: string): string {
  const [first = ''] = run;
  const count = run.length / first.length;
  const name = `U+${(first.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  return count === 1 ? name : `${name} ×${count}`;
}

/** Returns a text of other people with the names of its unseen characters instead: `[U+202E]`. */
export const plainText = (text: string): string => text.replace(unseenCharacters, (run) => `[${nameCharacters(run)}]`);
