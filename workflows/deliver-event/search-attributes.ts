import { defineSearchAttributeKey } from '@temporalio/common';

/**
 * By what operators list deliveries in Temporal, all of type Keyword: three ids and codes that
 * stay, and the state. Source: design, section 6.
 */
export const organizationAttribute = defineSearchAttributeKey('OrgApiOrganization', 'KEYWORD');
export const webhookAttribute = defineSearchAttributeKey('OrgApiWebhook', 'KEYWORD');
export const eventTypeAttribute = defineSearchAttributeKey('OrgApiEventType', 'KEYWORD');
/**
 * `attempting` until its first attempt has failed, `waiting` from then on, and at its end
 * `delivered`, `exhausted` or `closed`.
 */
export const stateAttribute = defineSearchAttributeKey('OrgApiState', 'KEYWORD');

/** All of them, as a namespace has to know them. */
export const deliveryAttributes = [
  organizationAttribute,
  webhookAttribute,
  eventTypeAttribute,
  stateAttribute,
] as const;
