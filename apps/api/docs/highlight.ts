import { type Html, html } from '#runtime/pages/html.ts';

/** Words of the samples' languages, of JSON and of the shell. */
const words =
  'import|from|const|await|new|return|function|package|func|if|defer|nil|public|class|static|void|throws|throw|var|' +
  'export|null|true|false|curl|npm|pip';

/** The tokens that have a color, by name: its first letter is the class. A name is one of JSON. */
const tokens = [
  String.raw`(?<comment>(?<=^|\s)(?://|# ).*$)`,
  String.raw`(?<name>"[^"\n]*"(?=\s*:\s))`,
  String.raw`(?<string>(?<quote>["'\u0060])(?:(?!\k<quote>)[^\\]|\\.)*\k<quote>)`,
  String.raw`(?<word>(?<![\w.$/-])(?:${words})(?![\w/-]))`,
];
const token = new RegExp(tokens.join('|'), 'gm');

/** Returns code with its tokens in elements that the style sheet colors. One rule serves all languages of the page. */
export function highlight(code: string): Html {
  const parts: (Html | string)[] = [];
  let end = 0;
  for (const { 0: text, index, groups = {} } of code.matchAll(token)) {
    const [kind = ''] = Object.entries(groups).find(([, found]) => found !== undefined) ?? [];
    parts.push(code.slice(end, index), html`<i class="${kind.charAt(0)}">${text}</i>`);
    end = index + text.length;
  }
  return html`${parts}${code.slice(end)}`;
}
