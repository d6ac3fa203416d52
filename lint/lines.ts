/** Lines of at most 120 columns, in every text that people write. */
const maxColumns = 120;

/** A word without a space that may exceed the limit: an address, a path, a key, a test vector. */
const unbreakable = /\S{80,}/;

/** The name of a test, which is one string so that a search for it finds it. */
const testName = /^\s*((it|test|describe)(\.\w+)*(\(.*\))?\()?(['"`]).+\5,/;

/** A line of Markdown that is one link. */
const linkOnly = /^(- )?\[[^\]]*\]\([^)]*\)\.?$/;

/**
 * Returns the lines of `text` that are too long, one message per line.
 * Excepted are lines that cannot be broken: Markdown tables, links and fenced code (printed
 * output), names of tests, and lines with a word of 80 columns or more.
 */
export function findLongLines(file: string, text: string): string[] {
  const isMarkdown = file.endsWith('.md');
  const isTest = file.endsWith('.test.ts');
  let isFenced = false;
  return text.split('\n').flatMap((line, index) => {
    if (isMarkdown && line.trimStart().startsWith('```')) isFenced = !isFenced;
    const columns = [...line].length;
    const isExcepted =
      isFenced ||
      (isMarkdown && (line.startsWith('|') || linkOnly.test(line))) ||
      (isTest && testName.test(line)) ||
      unbreakable.test(line);
    return columns > maxColumns && !isExcepted
      ? [`${file}:${index + 1}: ${columns} columns, at most ${maxColumns}`]
      : [];
  });
}
