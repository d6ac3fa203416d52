/** Pages contain tokens of forms, so their length must not depend on what they contain (BREACH). */
import { expect, it } from 'vitest';
import { shareConsole } from './setup.ts';

const shared = shareConsole();

it('no page is compressed, whatever a browser accepts: sign-in, overview, list, form, redirect and error', async () => {
  const t = shared();
  const ada = await t.enrol();
  const visitor = t.http(ada);
  const home = `/o/${ada.orgId}`;
  const paths = ['/sign-in', home, `${home}/keys`, `${home}/webhooks/new`, `${home}/audit-log`, '/', `${home}/nowhere`];
  for (const path of paths) {
    for (const accepted of ['gzip, deflate, br, zstd', 'gzip, identity;q=0']) {
      const { headers } = await visitor.get(path, { headers: { 'accept-encoding': accepted } });
      expect([path, headers.get('content-encoding')]).toEqual([path, null]);
    }
  }
});
