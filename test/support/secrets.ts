import { BlockList } from 'node:net';
import type { KeySecrets } from '#domain/keys/key.ts';
import type { SealingKeys } from '#domain/webhooks/seal.ts';

/** Fixed secrets of test installations, as an app reads them from its environment. */
export const testKeySettings = {
  KEY_PEPPERS: `1:${Buffer.from('a pepper of the tests, 32 bytes!').toString('base64')}`,
  KEY_TAG_SECRETS: Buffer.from('a tag secret of the tests, 32 by').toString('base64'),
};

/** The same, as the domain uses them. */
export const testKeySecrets: KeySecrets = {
  region: 'us',
  peppers: [{ version: 1, secret: Buffer.from('a pepper of the tests, 32 bytes!') }],
  tagSecrets: [Buffer.from('a tag secret of the tests, 32 by')],
};

/** The key that seals signing secrets in tests, as an app reads it from its environment. */
export const testWebhookSecretKeys = `1:${Buffer.from('a sealing key of the tests, 32 b').toString('base64')}`;

/** The same, as the domain uses it. */
export const testSealingKeys: SealingKeys = [{ version: 1, secret: Buffer.from('a sealing key of the tests, 32 b') }];

/** Addresses that webhooks of tests may have: loopback, where their receivers are. */
export const testAllowList = new BlockList();
testAllowList.addSubnet('127.0.0.0', 8, 'ipv4');
