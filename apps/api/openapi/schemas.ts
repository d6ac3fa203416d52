import { z } from 'zod';
import { type EventType, eventEnvelope } from '#domain/contract/events.ts';
import * as resources from '#domain/contract/resources.ts';

/** A JSON Schema (draft 2020-12) as OpenAPI 3.1 takes it. */
type JsonSchema = { [keyword: string]: unknown };

const { Members, Outcomes, Roster, SeatCounts, SeatFamilies } = resources;

/**
 * Every named schema, by name, in the order of the document. None is `Client`, as generators name
 * the client itself.
 */
const named: Record<string, z.ZodType> = {
  Organization: resources.Organization,
  Roster,
  RosterClient: Roster.shape.clients.element,
  Members,
  Member: Members.element,
  RoleReference: Members.element.shape.roles.element,
  Outcomes,
  Metric: Outcomes.shape.calmMessages.unwrap(),
  ReferralCodes: resources.ReferralCodes,
  ReferralCode: resources.ReferralCode,
  ReferralEarnings: resources.ReferralEarnings,
  MonthlyEarnings: resources.ReferralEarnings.shape.months.element,
  Roles: resources.Roles,
  Role: resources.Role,
  SeatCounts,
  SeatSubscription: SeatCounts.shape.subscriptions.element,
  SeatFamilies,
  HeldSeat: SeatFamilies.shape.seats.element,
  EligibleFamily: SeatFamilies.shape.eligible.element,
  EndedSeat: SeatFamilies.shape.ended.element,
  ErrorBody: resources.ErrorBody,
};

/** Returns the name of an event's envelope: `client.started` is `ClientStartedEvent`. */
export function eventSchemaName(type: string): string {
  const words = type.split('.').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('')}Event`;
}

/**
 * Returns the schema of an event. It is no component: generators leave out components that no path
 * names, and a reference from `webhooks` to such a one does not compile.
 */
export function eventSchema(type: EventType): JsonSchema {
  const { $schema, ...schema } = z.toJSONSchema(eventEnvelope(type), {
    override: ({ jsonSchema }) => simplify(jsonSchema as JsonSchema),
  });
  return { title: eventSchemaName(type), ...schema };
}

/**
 * Returns a reference to the component of a response.
 *
 * @throws Error when the schema has no name here: a new read names its response above.
 */
export function schemaReference(schema: z.ZodType): { $ref: string } {
  const name = Object.keys(named).find((candidate) => named[candidate] === schema);
  if (name === undefined)
    throw new Error('A schema of the document has no name: add it to apps/api/openapi/schemas.ts.');
  return { $ref: `#/components/schemas/${name}` };
}

/**
 * Returns `components.schemas`: the contract's zod schemas as JSON Schemas. A named schema is a
 * reference wherever another contains it.
 */
export function schemaComponents(): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    override: ({ jsonSchema }) => simplify(jsonSchema as JsonSchema),
  });
  return Object.fromEntries(
    Object.keys(named).map((name) => {
      const { $schema, $id, ...schema } = schemas[name] as JsonSchema;
      return [name, schema];
    }),
  );
}

/**
 * Removes what zod adds and partners should not rely on: closed objects (a response may gain
 * fields), and patterns that repeat a format. Writes a nullable scalar as one type list.
 */
function simplify(schema: JsonSchema): void {
  delete schema.additionalProperties;
  if (schema.format !== undefined) delete schema.pattern;
  if (schema.type === 'number' && Number.isInteger(schema.const)) schema.type = 'integer';
  const [first, second, ...more] = (schema.anyOf ?? []) as JsonSchema[];
  if (typeof first?.type !== 'string' || first.type === 'object' || second?.type !== 'null' || more.length > 0) return;
  delete schema.anyOf;
  Object.assign(schema, { ...first, ...schema, type: [first.type, 'null'] });
}
