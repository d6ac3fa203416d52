/** Commands of the guide for a release and its Secret, in a shell, against a real API server. */
import { expect, it, vi } from 'vitest';
import { createNamespace } from '#test/api-server.ts';
import { listBlocks } from '#test/documents.ts';
import { carryOut, readSection, without } from '../operations/page.ts';
import { openGuideShell } from './guide-shell.ts';
import { shareApiServer } from './share-api-server.ts';

const waiting = { timeout: 150_000, interval: 100 };

const server = shareApiServer();

it('an upgrade and an installation that Helm did not finish are settled by the commands of the guide', {
  timeout: 600_000,
}, async () => {
  const section = readSection('roll-back.md', 'If Helm was interrupted');
  const t = await arrange();
  const upgrade = 'helm upgrade $RELEASE charts/org-api -n $NS --values us-values.yaml';
  const install = upgrade.replace('upgrade', 'upgrade --install');
  /** Kills Helm while it waits for pods, which no node runs. Helm then fails in the words of the page. */
  async function interrupt(command: string, status: string): Promise<void> {
    const stop = t.start(`${command} --wait`);
    await vi.waitFor(async () => expect((await t.listRevisions()).at(-1)?.status).toBe(status), waiting);
    await stop();
    expect(section.text).toContain(`\`${status}\``);
    const [, sentence] = /"(another operation [^"]+)"/.exec(section.text.replace(/\s+/g, ' ')) ?? [];
    await expect(t.shell(command)).rejects.toThrow(sentence ?? 'a sentence of the page');
  }
  await t.shell(install);
  await interrupt(upgrade, 'pending-upgrade');
  await carryOut(section, [
    [/^helm history /, async (command) => expect((await t.shell(command)).split('\n').at(-1)).toContain('pending-')],
    [
      /^helm rollback /,
      async (command) => {
        const deployed = (await t.listRevisions()).findLast(({ status }) => status === 'deployed');
        await t.runHelm(command.replace('REVISION', String(deployed?.revision)));
      },
    ],
    [/^helm upgrade \$RELEASE /, t.runHelm],
    [
      /^helm uninstall /,
      async (command) => {
        expect((await t.listRevisions()).at(-1)?.status).toBe('deployed');
        await t.shell(command);
        await interrupt(install, 'pending-install');
        await t.shell(command);
      },
    ],
    [/^helm upgrade --install /, t.runHelm],
  ]);
  expect(await t.listRevisions()).toMatchObject([{ revision: 1, status: 'deployed' }]);
});

it('a restored database is named by every URL of the Secret, and nothing else of it changes', {
  timeout: 300_000,
}, async () => {
  const t = await arrange();
  const names = [
    'DATABASE_URL',
    ...['API', 'WORKER', 'CONSOLE', 'OPERATOR', 'PLATFORM'].map((app) => `${app}_DATABASE_URL`),
  ];
  const tls = '?sslmode=verify-full&sslrootcert=/etc/postgresql-ca/ca.crt';
  const urlAt = (host: string, name: string) =>
    `postgresql://${name.toLowerCase()}:p4ss@${host}.${t.NS}.svc:5432/org_api${tls}`;
  const urls = (host: string) => Object.fromEntries(names.map((name) => [name, urlAt(host, name)]));
  const others = { KEY_PEPPERS: '1:cGVwcGVy', REDIS_URL: 'redis://default:p@valkey-us:6379' };
  await server().apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api-us', namespace: t.NS },
    stringData: { ...urls('org-api-us-rw'), ...others },
  });

  const lines = listBlocks(readSection('restore-a-backup.md', 'Restore'), 'sh').flatMap((block) => block.split('\n'));
  for (const line of lines.filter((one) => /^(secret\(\)|move_url)/.test(one))) await t.shell(line);

  const data = JSON.parse(await t.shell("kubectl -n $NS get secret org-api-us -o jsonpath='{.data}'")) as object;
  const after = Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]);
  expect(Object.fromEntries(after)).toEqual({ ...urls('org-api-us-2-rw'), ...others });
});

it('the test of a region that Argo CD deploys runs again, and its result is that of the newest run', {
  timeout: 300_000,
}, async () => {
  const section = readSection('deploy-with-argo-cd-or-flux.md', 'Argo CD');
  const t = await arrange();
  const webhookId = '0198c0de-0000-7000-8000-000000000001';
  t.addValues('# us-values.yaml', { probe: { enabled: true, clusterIP: '10.96.0.81', webhookId } });
  const pods = new Set<string>();
  const runTest = () =>
    carryOut(section, [
      [/argocd-(application|health)\.yaml/, without('no Argo CD runs')],
      [/^kubectl .* delete pod |^helm template /, t.shell],
      [
        /^kubectl .* wait /,
        async (command) => {
          pods.add(await t.shell("kubectl -n $NS get pod $NAME-probe -o jsonpath='{.metadata.uid}'"));
          await expect(t.shell(command.replace(/--timeout=\w+/, '--timeout=1s'))).rejects.toThrow();
          const status = JSON.stringify({ status: { phase: 'Succeeded' } }); // no node runs the pod
          await t.shell(`kubectl -n $NS patch pod $NAME-probe --subresource=status -p '${status}'`);
          await t.shell(command);
        },
      ],
      [/^kubectl .* logs /, without('no node has the log')],
    ]);
  await runTest();
  await runTest();
  expect(pods.size).toBe(2);
});

/** A namespace, and a shell with the values of a release. */
async function arrange() {
  const NS = await createNamespace(server());
  const guide = await openGuideShell(server(), NS);
  guide.addValues('# us-values.yaml', {
    region: 'us',
    baseUrls: { us: 'https://api.us.example.com', ca: 'https://api.ca.example.com' },
    image: { repository: 'registry.example.com/org-api' },
    secrets: { existingSecret: 'org-api-us' },
    allowPlaintext: ['redis', 'temporal'],
    temporal: { address: 'temporal:7233', namespace: 'org-api-us' },
    networkPolicy: { enabled: false },
  });
  return { NS, ...guide };
}
