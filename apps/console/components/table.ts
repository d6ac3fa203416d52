import { type Child, type Html, html, nothing } from '../web/html.ts';

/** One column. `numeric` is right-aligned; `main` names the row and titles its card on a phone. */
export interface Column<Row> {
  heading: string;
  cell: (row: Row) => Child;
  numeric?: boolean;
  main?: boolean;
}

/**
 * Draws a table, on a phone a card per row. `caption` names it for screen readers; `actions` is a
 * last column of buttons.
 */
export function table<Row>(parts: {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  actions?: (row: Row) => Child;
}): Html {
  const { caption, columns, rows, actions } = parts;
  // Roles are explicit because the cards' `display: block` removes them from the elements.
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

/** Draws the details of one object: names and values. */
export function detailList(entries: readonly (readonly [name: string, value: Child] | null | false)[]): Html {
  return html`<dl class="details">${entries.map((entry) =>
    entry ? html`<div><dt>${entry[0]}</dt><dd>${entry[1]}</dd></div>` : nothing,
  )}</dl>`;
}
