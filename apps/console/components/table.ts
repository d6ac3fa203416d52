import { attributes, type Child, type Html, html, nothing } from '#runtime/pages/html.ts';

/** One column. `numeric` is right-aligned; `main` names the row. */
export interface Column<Row> {
  heading: string;
  cell: (row: Row) => Child;
  numeric?: boolean;
  main?: boolean;
  /**
   * In a narrow frame: `before` or `beside` the name of the row, at the `start` or `end` of one
   * line under the name, a separate `plain` line, or `hidden`. By default a separate line with its
   * heading.
   */
  whenNarrow?: keyof typeof narrowClasses | undefined;
}

/**
 * Renders a table, in a narrow frame a list. `caption` names it for screen readers; `actions` is a
 * last column of buttons.
 */
export function table<Row>(parts: {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  actions?: ((row: Row) => Child) | null;
}): Html {
  const { caption, columns, rows, actions } = parts;
  // Roles are explicit because `display: block` in a narrow frame removes them from the elements.
  return html`<div class="table-frame"><table class="cards" role="table">
    <caption>${caption}</caption>
    <thead role="rowgroup"><tr role="row">
      ${columns.map(headingCell)}
      ${actions ? html`<th scope="col" role="columnheader">${hidden('Actions')}</th>` : nothing}
    </tr></thead>
    <tbody role="rowgroup">${rows.map((row) => tableRow(columns, row, actions))}</tbody>
  </table></div>`;
}

const hidden = (words: string): Html => html`<span class="visually-hidden">${words}</span>`;

const headingCell = <Row>({ heading, numeric }: Column<Row>): Html =>
  html`<th scope="col" role="columnheader"${attributes({ class: numeric ? 'numeric' : null })}>${heading}</th>`;

function tableRow<Row>(
  columns: readonly Column<Row>[],
  row: Row,
  actions: ((row: Row) => Child) | null | undefined,
): Html {
  return html`<tr role="row">
    ${columns.map((column) => bodyCell(column, row))}
    ${actions ? html`<td role="cell" class="row-actions">${actions(row)}</td>` : nothing}
  </tr>`;
}

const narrowClasses = {
  before: 'before',
  beside: 'beside',
  start: 'at-start',
  end: 'at-end',
  plain: 'plain',
  hidden: 'wide-only',
};

function bodyCell<Row>({ heading, cell, main, numeric, whenNarrow }: Column<Row>, row: Row): Html {
  if (main) return html`<th scope="row" role="rowheader" data-heading="${heading}">${cell(row)}</th>`;
  const classes = [numeric ? 'numeric' : null, whenNarrow === undefined ? null : narrowClasses[whenNarrow]];
  const name = classes.filter((each) => each !== null).join(' ');
  const about = attributes({ 'data-heading': heading, class: name === '' ? null : name });
  return html`<td role="cell"${about}><div>${cell(row)}</div></td>`;
}

/** Renders the details of one object: names and values. */
export function detailList(entries: readonly (readonly [name: string, value: Child] | null | false)[]): Html {
  return html`<dl class="details">${entries.map((entry) =>
    entry ? html`<div><dt>${entry[0]}</dt><dd>${entry[1]}</dd></div>` : nothing,
  )}</dl>`;
}
