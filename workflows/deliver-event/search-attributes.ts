import { defineSearchAttributeKey } from '@temporalio/common';

/**
 * The search attributes by which operators list deliveries in Temporal, all of type Keyword. They
 * never change: PostgreSQL has a delivery's state.
 */
export const organizationAttribute = defineSearchAttributeKey('OrgApiOrganization', 'KEYWORD');
export const webhookAttribute = defineSearchAttributeKey('OrgApiWebhook', 'KEYWORD');
export const eventAttribute = defineSearchAttributeKey('OrgApiEvent', 'KEYWORD');
export const eventTypeAttribute = defineSearchAttributeKey('OrgApiEventType', 'KEYWORD');

/** `INDEXED_VALUE_TYPE_KEYWORD` of Temporal's API. */
export const keywordType = 2;

/** All search attributes that a namespace needs. */
export const deliveryAttributes = [
  organizationAttribute,
  webhookAttribute,
  eventAttribute,
  eventTypeAttribute,
] as const;
