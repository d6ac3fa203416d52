import type { RequestListener, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';

/**
 * Serves `GET /metrics` on a port that no partner reaches. An app without another port serves its
 * health here: `/readyz` with 503 while `findUnreadiness` returns a reason, and `/livez` with 503
 * while `findLivenessFailure` does, which restarts the pod.
 */
export function serveMetrics(
  registry: Registry,
  findUnreadiness?: () => string | null,
  findLivenessFailure: () => string | null = () => null,
): RequestListener {
  return async (request, response) => {
    if (findUnreadiness !== undefined && request.url === '/livez') return respond(response, findLivenessFailure());
    if (findUnreadiness !== undefined && request.url === '/readyz') return respond(response, findUnreadiness());
    if (request.url !== '/metrics') {
      response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Metrics are at /metrics.\n');
      return;
    }
    const text = await registry.metrics();
    response.writeHead(200, { 'Content-Type': registry.contentType }).end(text);
  };
}

function respond(response: ServerResponse, problem: string | null): void {
  response.writeHead(problem === null ? 200 : 503, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(JSON.stringify(problem === null ? { status: 'ok' } : { status: 'unready', reason: problem }));
}
