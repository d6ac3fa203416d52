import { pickValues } from '../web/form.ts';
import { NotFoundError } from '../web/response.ts';
import type { RouteMiddleware } from '../web/state.ts';
import { respond } from './respond.ts';

/**
 * Answers a GET with its page or file.
 *
 * @throws NotFoundError when the query is not what the route takes.
 */
export const showPage: RouteMiddleware = async (ctx) => {
  const { route, visit } = ctx.state;
  // A value with NUL counts as none: PostgreSQL has no such text.
  const given = [...new URLSearchParams(ctx.querystring)].filter(([, value]) => !value.includes('\0'));
  const query = route.schema.safeParse(pickValues(route.schema, new URLSearchParams(given)));
  if (!query.success) throw new NotFoundError();
  await respond(ctx, await route.run(visit, query.data));
};
