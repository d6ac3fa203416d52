import { cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { chart, pick, render } from '#test/render-charts.ts';

/**
 * Returns the text that `helm install` prints at its end. It would ask a cluster for its version,
 * so a copy of the chart has the notes as an object, which `helm template` renders.
 */
const copy = path.join(mkdtempSync(path.join(tmpdir(), 'org-api-notes-')), 'org-api');
cpSync(chart, copy, { recursive: true });
renameSync(path.join(copy, 'templates/NOTES.txt'), path.join(copy, 'notes.txt'));
writeFileSync(
  path.join(copy, 'templates/notes.yaml'),
  'kind: Notes\nmetadata: {name: notes}\ntext: {{ tpl (.Files.Get "notes.txt") . | toJson }}\n',
);
afterAll(() => rmSync(path.dirname(copy), { recursive: true }));

const notes = (values: object = {}): string => pick(render({ values, from: copy }), 'Notes').text;

describe('NOTES.txt', () => {
  it('names the region, its URL and the Job that it waits for', () => {
    expect(notes()).toContain('region us, version 0.1.0, is release us in namespace org-api-us');
    expect(notes()).toContain('http://us-org-api-api.org-api-us.svc:80');
    expect(notes()).toMatch(/The console is https:\/\/console\.us\.example\.com\.$/m);
    const withoutRoute = { httpRoute: { enabled: false }, ingress: { enabled: false } };
    expect(notes({ console: withoutRoute })).toContain(
      'The console is https://console.us.example.com, as soon as you route it there',
    );
    expect(pick(render(), 'Job').metadata.name).toMatch(/^us-org-api-migrate-/);
    expect(notes()).toContain('Job us-org-api-migrate-…');
  });

  it('explains how to create the probe while there is none, with the URL of its webhook', () => {
    expect(notes({ probe: { webhookId: '' } })).toContain(
      'orgctl probe create --region us --url http://10.96.0.81:8090/ --secret-name us-org-api-probe',
    );
    expect(notes({ probe: { webhookId: '', clusterIP: 'fd00::81' } })).toContain('--url http://[fd00::81]:8090/ ');
    expect(notes()).toContain('helm test us -n org-api-us');
    expect(notes()).not.toContain('orgctl');
    expect(notes({ probe: { enabled: false } })).toContain('set probe.enabled');
  });

  it('warns when only the worker restricts the addresses of webhooks', () => {
    expect(notes({ networkPolicy: { enabled: false } })).toContain('WARNING: networkPolicy.enabled is false');
    expect(notes()).not.toContain('WARNING');
  });

  it('lists what an uninstall leaves', () => {
    expect(notes()).toMatch(/everything of this release but the migration Job of an upgrade that failed\. It leaves/);
    expect(notes()).toMatch(/It leaves what is not the release's: your Secrets, the data in PostgreSQL/);
  });
});
