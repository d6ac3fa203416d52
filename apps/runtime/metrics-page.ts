import type { RequestListener } from 'node:http';
import type { Registry } from 'prom-client';

/** `GET /metrics` in Prometheus' text format, on a port of its own that no partner reaches. */
export function serveMetrics(registry: Registry): RequestListener {
  return async (request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Metrics are at /metrics.\n');
      return;
    }
    const text = await registry.metrics();
    response.writeHead(200, { 'Content-Type': registry.contentType }).end(text);
  };
}
