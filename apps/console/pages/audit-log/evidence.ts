import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { type EvidenceChain, listEvidenceChains } from '#domain/audit-log/evidence.ts';
import { recordAuditEntry } from '#domain/audit-log/record.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { emptyState } from '../../components/empty-state.ts';
import { download, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { zip } from '../../web/zip.ts';
import { type EvidencePeriod, evidencePieces } from './evidence-pieces.ts';

const month = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/)
  .catch('');
const permission = 'org.activity.read';

/** The evidence package: whole months of the log, with the programs that verify it. */
export const evidenceRoutes = [
  member.view({
    name: 'showEvidence',
    path: '/audit-log/evidence',
    permission,
    async show(visit) {
      const chains = await listEvidenceChains(visit.console.database, visit.organizationId);
      return page({
        title: 'Evidence package',
        breadcrumbs: [['Audit log', visit.at('/audit-log')]],
        body: html`
          <p>Download whole months of the audit log with two programs that verify them offline. A court, an expert or
            the other side can check that no entry was changed, removed, added or moved.</p>
          ${chains.length === 0 ? noMonths : chooseMonths(visit, chains)}
          ${whatItProves}`,
      });
    },
  }),
  member.view({
    name: 'downloadEvidence',
    path: '/audit-log/evidence/zip',
    permission,
    query: z.object({ from: month, to: month }),
    async show(visit, { from, to }) {
      const { database, now } = visit.console;
      const { organizationId, by } = visit;
      const chains = (await listEvidenceChains(database, organizationId)).filter(
        ({ month }) => from <= month && month <= to,
      );
      // The page shows the months to choose from; a file could not.
      if (from === '' || to === '' || chains.length === 0) return redirect(visit.at('/audit-log/evidence'));
      const period: EvidencePeriod = { organizationId, from, to, createdAt: now() };
      const record = (action: string, detail: Record<string, unknown>) =>
        database.change((tx) => recordAuditEntry(tx, { organizationId, by, action, detail: { from, to, ...detail } }));
      return download({
        fileName: `evidence-${from}-to-${to}.zip`,
        type: 'application/zip',
        async open() {
          await record('audit_log.download', { format: 'evidence' });
          const pieces = evidencePieces(database, period, chains, programs(), (manifestSha256) =>
            record('audit_log.evidence', { manifestSha256 }),
          );
          return Readable.from(zip(pieces), { objectMode: false });
        },
      });
    },
  }),
];

const programFiles = ['README.txt', 'verify.mjs', 'verify.py'];

/** Reads the files that every package contains. */
const programs = () =>
  programFiles.map((file) => ({
    file,
    text: readFileSync(new URL(`../../assets/evidence/${file}`, import.meta.url), 'utf8'),
  }));

const noMonths = emptyState({ title: 'No entries yet', body: 'A package can be made once the log has entries.' });

function chooseMonths(visit: MemberVisit, chains: readonly EvidenceChain[]): Html {
  const newest = chains.at(-1)?.month;
  const options = chains.map(({ month, from, to }) => {
    const [selected, entries] = [month === newest ? html` selected` : '', to - from + 1];
    return html`<option value="${month}"${selected}>${month} (${entries.toLocaleString('en')}
      ${entries === 1 ? 'entry' : 'entries'})</option>`;
  });
  return html`<form method="get" action="${visit.at('/audit-log/evidence/zip')}">
    <div class="field"><label for="from">First month (UTC)</label>
      <select id="from" name="from">${options}</select></div>
    <div class="field"><label for="to">Last month (UTC)</label>
      <select id="to" name="to">${options}</select></div>
    <p class="actions"><button type="submit">Download evidence package</button>
      <span class="quiet">The download is recorded in the log.</span></p>
  </form>`;
}

const whatItProves = html`
  <section><h2>How to verify it</h2>
  <p>Unpack the file, open a terminal in its folder, and run <code>node verify.mjs</code> or
    <code>python3 verify.py</code>. The last line is <code>INTACT</code> or <code>NOT INTACT</code>, and the
    lines above it say what differs.</p>
  </section>
  <section><h2>What it proves</h2>
  <ul>
    <li>Each entry has a hash that covers the entry and every entry before it. A changed, removed, added or moved
      entry changes all hashes after it, and the programs name the first line that differs.</li>
    <li>The download writes an entry “Downloaded an evidence package” with the SHA-256 of the package’s manifest.</li>
  </ul></section>
  <section><h2>What it does not prove</h2>
  <ul>
    <li>That the whole log was not rewritten. A person with full rights in the database could change an entry and write
      every hash after it again. A note of the log’s position and hash that was kept elsewhere, an anchor, shows that.
      The monthly email about the end of the audit log has one, and the operator of the service has others. README.txt
      in the package says how to verify with it.</li>
    <li>Deliveries by themselves. <code>deliveries.csv</code> is in no chain of hashes: a person who changes it and its
      hash in the manifest gets INTACT. So compare the SHA-256 of <code>manifest.json</code>, which the programs print,
      with the one in the log’s entry of the download.</li>
    <li>That a receiver processed an event. The package lists what the service recorded of each delivery.</li>
    <li>Names that an erasure removed. The entries remain and can be verified.</li>
  </ul></section>`;
