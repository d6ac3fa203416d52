import * as client from './client.ts';
import * as identity from './identity.ts';
import * as key from './key.ts';
import * as organization from './organization.ts';
import * as redelivery from './redelivery.ts';
import * as webhook from './webhook.ts';

/**
 * Every entity: the rows that repositories load and change (ADR 0103), which are all that these
 * files export. A test compares each with its table. Tables that only statements use have none.
 */
export const entities = [organization, client, key, webhook, redelivery, identity].flatMap((file) =>
  Object.values(file),
);
