/** TSDoc syntax of docstrings, read by TSDoc's own parser. */
import { TSDocConfiguration, TSDocParser } from '@microsoft/tsdoc';

const parser = new TSDocParser(new TSDocConfiguration());
const docstring = /\/\*\*(?!\/)[\s\S]*?\*\//g;

/** Returns what TSDoc's parser reports about the docstrings of `text`, one message each. */
export function findDocstringErrors(file: string, text: string): string[] {
  return [...text.matchAll(docstring)].flatMap(({ 0: comment, index }) => {
    const firstLine = text.slice(0, index).split('\n').length;
    return parser.parseString(comment).log.messages.map((message) => {
      const line = firstLine + comment.slice(0, message.textRange.pos).split('\n').length - 1;
      return `${file}:${line}: ${message.unformattedText}`;
    });
  });
}
