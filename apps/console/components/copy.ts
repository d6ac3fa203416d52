import { type Html, html } from '#runtime/pages/html.ts';
import { icon } from './icon.ts';

/** Renders an id with a button that copies it. `what` names it for screen readers: `event ID`. */
export const copyableId = (what: string, id: string): Html => copyableText(what, html`<code>${id}</code>`, id);

/** Renders a URL with a button that copies it. */
export const copyableUrl = (what: string, url: string): Html => copyableText(what, isolatedUrl(url), url);

/** Renders a URL, which breaks before a part of its path rather than within a word. */
export const isolatedUrl = (url: string): Html =>
  html`<bdi class="url">${url.split(/(?<=[^:/]\/|\?)/).map((part) => html`${part}<wbr>`)}</bdi>`;

/** The script shows the button; without it the text can be selected as a whole. */
const copyableText = (what: string, shown: Html, text: string): Html =>
  html`<span class="copy">${shown}<button type="button" class="copy-button" data-copy="${text}" title="Copy"
    hidden>${icon('copy')}${icon('copied')}<span class="visually-hidden">Copy ${what}</span></button></span>`;
