import { Marked, Renderer, type Token, type Tokens, type TokensList } from 'marked';
import { type Html, html, trusted } from '#runtime/pages/html.ts';

/** A chapter of the introduction: its code stands beside its text. */
export interface Chapter {
  /** The id of its heading; the first chapter has none, nor a heading. */
  id: string;
  heading: string;
  text: Html;
  code: readonly { language: string; text: string }[];
}

const plain = new Renderer();
/** Markdown of the service's declarations. HTML in it is shown as text. */
const marked = new Marked({
  renderer: {
    html: ({ text }) => html`${text}`.toString(),
    table(token: Tokens.Table): string {
      plain.parser = this.parser;
      const label = token.header.map(({ text }) => text.replaceAll('`', '')).join(', ');
      const table = trusted(plain.table(token));
      return html`<div class="wide" tabindex="0" role="group" aria-label="${label}">${table}</div>`.toString();
    },
  },
});

/** Renders a paragraph or more. */
export const markdown = (text: string): Html => trusted(marked.parse(text, { async: false }));

/** Renders text within a line. */
export const inlineMarkdown = (text: string): Html => trusted(marked.parseInline(text, { async: false }));

/** Returns the id of a heading: `Get started` is `get-started`. */
export const slug = (heading: string): string => heading.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** Returns the chapters of the introduction. @param leftOut - kinds of Markdown that a chapter's text omits, by id. */
export function chapters(introduction: string, leftOut: Readonly<Record<string, Token['type']>>): Chapter[] {
  const parts: Token[][] = [[]];
  for (const token of marked.lexer(introduction)) {
    if (token.type === 'heading') parts.push([]);
    parts.at(-1)?.push(token);
  }
  return parts.map((tokens) => {
    const [first] = tokens;
    const heading = first?.type === 'heading' ? (first as Tokens.Heading).text : '';
    const id = slug(heading);
    const isText = ({ type }: Token) => type !== 'heading' && type !== 'code' && type !== leftOut[id];
    const code = tokens.filter((token): token is Tokens.Code => token.type === 'code');
    return {
      id,
      heading,
      text: trusted(marked.parser(tokens.filter(isText) as TokensList)),
      code: code.map(({ lang = '', text }) => ({ language: lang, text })),
    };
  });
}
