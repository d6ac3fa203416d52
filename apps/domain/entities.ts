import * as organization from './access/membership.entity.ts';
import * as client from './clients/client.entity.ts';
import * as identity from './identity/identity.entity.ts';
import * as key from './keys/api-key.entity.ts';
import * as redelivery from './webhooks/redelivery.entity.ts';
import * as webhook from './webhooks/webhook.entity.ts';

/**
 * Every entity: the rows that repositories load and change (ADR 0103), which are all that these
 * files export. A test compares each with its table. Tables that only statements use have none.
 */
export const entities = [organization, client, key, webhook, redelivery, identity].flatMap((file) =>
  Object.values(file),
);
