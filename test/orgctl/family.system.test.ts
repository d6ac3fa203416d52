/** `orgctl family`, as operators run it. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { ErasureCertificate } from '#domain/clients/erase-family.ts';
import { setupOrgctl } from '#test/orgctl.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';

it('erases a family, prints its certificate again, and erases again after a restore', async () => {
  const { owner, make, orgctl } = await setupOrgctl();
  const orgId = await make.organization();
  const family = await make.family({ orgId, name: 'Quillfeather' });
  const run = (verb: string, ...args: string[]) => orgctl('family', verb, ...args, '--region', 'us', '--json');
  expect(await run('erase', '--family', family, '--reference', 'Quill feather')).toMatchObject({ code: 1 });
  const erased = await run('erase', '--family', family, '--reference', 'case-17');
  const [certificate] = erased.json<ErasureCertificate[]>();
  expect(certificate).toMatchObject({ organizationId: orgId, erasedBy: 'orgctl', reference: 'case-17' });
  const erasure = ['--erasure', certificate?.erasureId ?? ''];
  expect((await run('certificate', ...erasure)).json()).toEqual(certificate);
  expect(await run('erase', '--family', orgId, '--reference', 'x')).toMatchObject({
    code: 1,
    stderr: 'No organization has this family, and it was not erased.\n',
  });

  await owner.pool.query('truncate erasure, erased_family');
  await owner.pool.query('insert into family values ($1, $2, $3)', [orgId, family, 'Quillfeather']);
  const files = { printed: erased.stdout, logged: `{"msg":"x"}\n${JSON.stringify({ erasure: certificate })}\n` };
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(temporaryFolder(), name);
    await writeFile(file, text);
    expect(await run('erase-again', '--certificates', file)).toMatchObject({ code: 0 });
    await writeFile(file, text.slice(0, -30));
    expect(await run('erase-again', '--certificates', file)).toMatchObject({ code: 1 });
  }
  const { rows } = await owner.pool.query('select name from family');
  expect(rows).toEqual([{ name: 'Erased family' }, { name: 'Erased family' }]);
  // As after a restore of a backup that had no row of the family.
  await owner.pool.query('delete from erasure');
  expect(await run('erase', '--family', family, '--reference', 'case-17')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('was erased before a backup was restored'),
  });
});
