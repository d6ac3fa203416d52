import { type Child, type Html, html, nothing } from '../web/html.ts';

/**
 * One column: its heading, and what it shows of a row. `numeric` stands right-aligned; `main` names
 * the row and is its card's title on a phone.
 */
export interface Column<Row> {
  heading: string;
  cell: (row: Row) => Child;
  numeric?: boolean;
  main?: boolean;
}

/**
 * A list of rows: a table, which on a phone becomes a card per row with each value under its
 * heading. `caption` names it for screen readers. `actions` is a last column of buttons.
 */
export function table<Row>(parts: {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  actions?: (row: Row) => Child;
}): Html {
  const { caption, columns, rows, actions } = parts;
  // Roles are said aloud because the cards' `display: block` would take them from the elements.
  return html`<div class="table-frame"><table class="cards" role="table">
    <caption>${caption}</caption>
    <thead role="rowgroup"><tr role="row">
      ${columns.map((column) => html`<th scope="col" role="columnheader" class="${column.numeric ? 'numeric' : ''}">${column.heading}</th>`)}
      ${actions ? html`<th scope="col" role="columnheader"><span class="visually-hidden">Actions</span></th>` : nothing}
    </tr></thead>
    <tbody role="rowgroup">${rows.map((row) => tableRow(columns, row, actions))}</tbody>
  </table></div>`;
}

function tableRow<Row>(columns: readonly Column<Row>[], row: Row, actions?: (row: Row) => Child): Html {
  return html`<tr role="row">
    ${columns.map((column) =>
      column.main
        ? html`<th scope="row" role="rowheader" data-heading="${column.heading}">${column.cell(row)}</th>`
        : html`<td role="cell" data-heading="${column.heading}" class="${column.numeric ? 'numeric' : ''}"><div>${column.cell(row)}</div></td>`,
    )}
    ${actions ? html`<td role="cell" class="row-actions">${actions(row)}</td>` : nothing}
  </tr>`;
}

/** Facts of one thing: names and values, one under the other. */
export function detailList(entries: readonly (readonly [name: string, value: Child] | null | false)[]): Html {
  return html`<dl class="details">${entries.map((entry) =>
    entry ? html`<div><dt>${entry[0]}</dt><dd>${entry[1]}</dd></div>` : nothing,
  )}</dl>`;
}
