/** Pages and downloads whose browser leaves: what is read for a download ends, and a page runs to its end. */
import { expect, it, vi } from 'vitest';
import { generateToken } from '#domain/identity/token.ts';
import { watchStatements } from '#test/watch-statements.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { routes } from '../../apps/console/routes.ts';
import { pathIn } from '../security/console/requests.ts';
import { arrange } from '../security/console/scene.ts';
import { setupConsole } from './setup.ts';

/** What pages read beside the session, which reads other tables. */
const tablesOfPages =
  'audit_chain, audit_entry, api_key, client_grant, delivery, enrolment, event, family, form_use, redelivery, ' +
  'known_browser, recovery_code, seat, sso_subject, webhook';

/** Pages that read nothing beside the session, roles and members. */
const pagesOfSession =
  'showHome showOrganizationSignIn completeProviderSignIn showSignIn showSecondFactor showEnrolmentLink ' +
  'showEnrolment showFactorChoice searchOrganization showCompromisedKey reviewSelected showInvite listRoles ' +
  'showNewRole showRole showRoleChange showSettings showNotifications';

async function setup() {
  const t = await setupConsole();
  const scene = await arrange(t, 'Harbor');
  const statements = watchStatements(t.owner, 'org-console');

  /** Requests a path as the owner of the scene, and returns how to leave it. */
  function open(path: string, headers: Record<string, string> = {}) {
    const leaving = new AbortController();
    const cookie = `${cookieName('session', t.origin)}=${scene.owner.sessionToken}`;
    const response = fetch(t.origin + path, {
      headers: { cookie, ...headers },
      signal: leaving.signal,
      redirect: 'manual',
    });
    response.catch(() => {});
    return { response, leave: () => leaving.abort() };
  }

  const pages = routes.filter(({ method }) => method === 'GET');
  const getPath = (name: string, query = '') => {
    const route = pages.find((each) => each.name === name);
    if (route === undefined) throw new Error(`no page ${name}`);
    return pathIn(route, scene) + query;
  };
  return { ...t, scene, pages, getPath, open, ...statements };
}

it('when 120 begun downloads are left, no statement of theirs continues and none begins', async () => {
  const t = await setup();
  const unlock = await t.lock('audit_entry');
  const downloads = Array.from({ length: 120 }, () => t.open(t.getPath('downloadAuditLog')));
  await t.until((count) => count > 0);
  for (const { leave } of downloads) leave();
  await t.expectEnded();
  await unlock();
  const { rows } = await t.owner.pool.query(`select from audit_entry where action = 'audit_log.download'`);
  expect(rows).toHaveLength(0);
  // The budget is free again.
  const whole = await t.open(t.getPath('downloadAuditLog')).response;
  expect(whole.status).toBe(200);
});

it('a download that is left after its first byte ends the statement that reads its next entries', async () => {
  const t = await setup();
  await t.owner.pool.query(
    `insert into audit_entry (organization_id, at, person_id, action)
     select $1, now() - n * interval '1 second', $2, 'webhook.pause' from generate_series(1, 6000) n`,
    [t.scene.owner.orgId, t.scene.owner.personId],
  );
  const download = t.open(t.getPath('downloadAuditLog'));
  const reader = (await download.response).body?.getReader();
  await reader?.read();
  await t.lock('audit_entry');
  // It reads on until a statement waits for the lock.
  void (async () => {
    while (!(await reader?.read())?.done);
  })().catch(() => {});
  await t.until((count) => count > 0);
  download.leave();
  await t.expectEnded();
});

it('a stranger who leaves pages ends no statement, so no invented cookie closes a connection', async () => {
  const t = await setup();
  const unlock = await t.lock('console_session');
  const invented = `${cookieName('session', t.origin)}=${generateToken()}`;
  const page = t.open('/account', { cookie: invented });
  await t.until((count) => count === 1);
  const lookups = async (condition: string) => {
    const { rows } = await t.owner.pool.query<{ pid: number; state: string }>(
      `select pid, state from pg_stat_activity where datname = current_database() and ${condition}`,
    );
    return rows;
  };
  const [lookup] = await lookups(`application_name = 'org-console' and wait_event_type = 'Lock'`);
  page.leave();
  // The console has seen the end of the first connection when it answers on later ones.
  for (let n = 0; n < 5; n += 1) await t.http().get('/sign-in');
  await unlock();
  const ofLookup = () => lookups(`pid = ${lookup?.pid}`);
  await vi.waitUntil(async () => (await ofLookup()).every(({ state }) => state !== 'active'), { timeout: 30_000 });
  expect(await ofLookup()).toMatchObject([{ state: 'idle' }]);
});

it('a page that is left runs to its end, and costs no connection', async () => {
  const t = await setup();
  const backends = new Set<number>();
  async function noteBackends() {
    const { rows } = await t.owner.pool.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and application_name = 'org-console'`,
    );
    for (const { pid } of rows) backends.add(pid);
  }
  const answered: string[] = [];
  for (const { name } of t.pages) {
    const unlock = await t.lock(tablesOfPages);
    const page = t.open(t.getPath(name));
    let hasResponse = false;
    void page.response.then(
      () => {
        hasResponse = true;
      },
      () => {},
    );
    await t.until((count) => count > 0 || hasResponse);
    if (hasResponse) answered.push(name);
    page.leave();
    // The console has seen the end of the first connection when it answers on later ones.
    for (let n = 0; n < 3; n += 1) await t.http().get('/sign-in');
    await noteBackends();
    await unlock();
    await vi.waitUntil(() => t.logLines.some((line) => JSON.parse(line).operation === name), { timeout: 20_000 });
  }
  expect(answered).toEqual(pagesOfSession.split(' '));
  // One for each page that waited, if its statement ended with its browser.
  expect(backends.size).toBeLessThan((t.pages.length - answered.length) / 4);
  const lines = t.logLines.map((line) => JSON.parse(line)).filter(({ operation }) => operation !== undefined);
  const ended = lines.filter(({ code }) => code === 'client_gone').map(({ operation }) => operation);
  expect(ended).toEqual(['downloadAuditLog']);
});
