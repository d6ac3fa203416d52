import { type Html, html, nothing, trusted } from '#runtime/pages/html.ts';
import type { MailText } from './text-forms.ts';

/** Tables, and colors of their own for dark: mail programs know little more. */
const style = trusted(`:root{color-scheme:light dark}
body{margin:0;background:#f4f6f9;color:#1a2233;font:16px/1.5 -apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
.card{width:100%;max-width:560px;background:#ffffff;border-radius:8px}.in{padding:24px}
h1{font-size:20px;line-height:1.3;margin:0 0 16px}p{margin:0 0 12px}.long{overflow-wrap:anywhere}
.name,.quiet{color:#556074;font-size:14px}.fact{padding:6px 0}
.go{display:inline-block;background:#1d56b0;color:#ffffff;padding:12px 20px;border-radius:6px;text-decoration:none}
@media (prefers-color-scheme:dark){body,.page{background:#10151f!important;color:#e7ecf5!important}
.card{background:#1a2130!important}.name,.quiet{color:#a8b3c7!important}a{color:#9cc2ff!important}
.go{background:#7fb0ff!important;color:#0b1526!important}}`);

/** Renders a mail as HTML. Every text in it is escaped. `stop`: the address that turns its kind off. */
export function renderHtml(text: MailText, stop: string | null): string {
  const { subject, sentences, facts, action, advice, reason } = text;
  return String(html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>${subject}</title><style>${style}</style></head>
<body><table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0"><tr>
<td align="center" style="padding:16px 8px"><table role="presentation" class="card" cellpadding="0" cellspacing="0">
<tr><td class="in"><h1 class="long">${subject}</h1>
${sentences.map((sentence) => html`<p class="long">${sentence}</p>`)}
<table role="presentation" width="100%" cellpadding="0" cellspacing="0">${facts.map(renderFact)}</table>
<p style="margin:20px 0 12px"><a class="go" href="${action.url}">${action.label}</a></p>
<p class="quiet long">Or open ${action.url}</p>
<p class="long">${advice}</p>
<p class="quiet long">${reason}${stop === null ? nothing : html` <a href="${stop}">Turn off these emails</a>`}</p>
</td></tr></table></td></tr></table></body></html>`);
}

const renderFact = ([name, value]: [string, string]): Html =>
  html`<tr><td class="fact"><span class="name">${name}</span><br><span class="long">${value}</span></td></tr>`;

/** Renders the same as plain text. */
export function renderText(text: MailText, stop: string | null): string {
  const { subject, sentences, facts, action, advice, reason } = text;
  const parts = [
    subject,
    ...sentences,
    facts.map(([name, value]) => `${name}: ${value}`).join('\n'),
    `${action.label}:\n${action.url}`,
    advice,
    `--\n${reason}`,
    ...(stop === null ? [] : [`Turn off these emails:\n${stop}`]),
  ];
  return `${parts.join('\n\n')}\n`;
}
