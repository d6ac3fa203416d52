// cspell:disable
import { sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { fold, foldSql } from '#domain/db/fold.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { createTestDatabase } from '#test/database.ts';

it('a text folds the same in a program and in SQL of any locale, and names match without accents', async () => {
  const database = await createTestDatabase({ empty: true, locale: "locale_provider libc locale 'C'" });
  onTestFinished(() => database.drop());
  const owner = await openDatabase({
    server: parsePostgresUrl(database.ownerUrl),
    applicationName: 'test',
    poolMax: 1,
  });
  onTestFinished(() => owner.close());
  const texts = [
    'Pätzold',
    'SØRENSEN',
    'ÖZTÜRK',
    'ΝΙΚΟΣ',
    'Łódź',
    'Đặng',
    'Straße',
    'Œuvre',
    'Ævar',
    'ışık',
    'Ａｄａ ﬁrm',
    'Nguyễn',
    '100 %_',
  ];
  for (const text of texts)
    expect(await owner.query(sql`select ${foldSql(sql`${text}::text`)} as folded`)).toEqual([{ folded: fold(text) }]);
  expect(texts.map(fold)).toEqual([
    'patzold',
    'sorensen',
    'ozturk',
    'νικοσ',
    'lodz',
    'dang',
    'strasse',
    'oeuvre',
    'aevar',
    'isik',
    'ada firm',
    'nguyen',
    '100 %_',
  ]);
});
