import { defineEntity, p } from '@mikro-orm/core';

/**
 * An API key: its fingerprint, never the key. `expiresAt` null: until revoked. `slot` is its slot
 * among the organization's 25 live keys, null once it has none. `hint` is what may be shown: the
 * first and last four characters.
 */
export const ApiKey = defineEntity({
  name: 'ApiKey',
  tableName: 'api_key',
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    makerId: p.text(),
    label: p.text(),
    fingerprint: p.blob(),
    pepperVersion: p.smallint(),
    hint: p.text(),
    scopes: p.array(),
    createdAt: p.datetime(),
    expiresAt: p.datetime().strictNullable(),
    revokedAt: p.datetime().strictNullable(),
    /** When its maker left the organization; a trigger writes it. */
    makerLeftAt: p.datetime().nullable(),
    slot: p.smallint().strictNullable(),
    predecessorId: p.uuid().strictNullable(),
  },
});

/**
 * One line of the activity log. `count` is above 1 only for refused calls, which share a line per
 * key and minute.
 */
export const Activity = defineEntity({
  name: 'Activity',
  tableName: 'activity',
  properties: {
    id: p.uuid().primary(),
    at: p.datetime().primary(),
    organizationId: p.uuid(),
    personId: p.text().strictNullable(),
    keyId: p.uuid().strictNullable(),
    action: p.text(),
    status: p.smallint().strictNullable(),
    code: p.text().strictNullable(),
    address: p.text().columnType('inet').strictNullable(),
    count: p.integer().default(1),
    detail: p.json().strictNullable(),
  },
});

/**
 * For how long the activity log is kept at least, in days, whatever the worker asks for; one row,
 * which only the owner can change.
 */
export const RetentionFloor = defineEntity({
  name: 'RetentionFloor',
  tableName: 'retention_floor',
  properties: { id: p.boolean().primary().default(true), activityDays: p.integer().default(90) },
});
