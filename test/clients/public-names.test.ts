import { expect, it } from 'vitest';
import * as receiver from '../../apps/clients/receiver-typescript/src/index.ts';
import * as client from '../../apps/clients/typescript/src/index.ts';

it('the TypeScript packages export what their READMEs name, and no function of their own', () => {
  expect(Object.keys(client).sort()).toEqual(['OrgApi', 'OrgApiError']);
  const kit = [
    'InvalidDeliveryError',
    'forget',
    'gapsSql',
    'mysql',
    'postgres',
    'receive',
    'schema',
    'sqlite',
    'verify',
  ];
  expect(Object.keys(receiver).sort()).toEqual(kit);
});
