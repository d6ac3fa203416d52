// cspell:disable
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { fold, foldSql } from '#domain/db/fold.ts';
import { setupDatabase } from '#test/setup.ts';

it('a text folds the same in a program and in SQL, and names match as they are typed without accents', async () => {
  const { owner } = await setupDatabase();
  const texts = [
    'Pätzold',
    'SØRENSEN',
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
