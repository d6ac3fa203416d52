import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A proxy that fails as a network does, so that a test need not stop a shared server. */
export interface TcpProxy {
  port: number;
  /**
   * Stops all traffic in both directions. Connections stay open, and new ones are accepted and left
   * unanswered.
   */
  pause(): void;
  /** Stops the traffic of the connections that are open now. Nothing closes them, and new ones work. */
  silence(): void;
  /** Drops the server's responses; requests of clients pass. `resume` ends it. */
  dropReplies(): void;
  /** Closes every connection and rejects new ones. */
  reject(): Promise<void>;
  /** Leads new connections to another port, as a changed address does. Open ones stay. */
  redirect(port: number): void;
  /** Lets all traffic pass again. */
  resume(): Promise<void>;
}

/** Starts a proxy to a port on loopback. It closes when the test ends. */
export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let paused = false;
  let targetPort = target.port;
  let isDroppingReplies = false;

  function track(socket: Socket): Socket {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    return socket;
  }
  const server = createServer((client) => {
    const upstream = track(connect(targetPort, target.host));
    track(client);
    client.on('data', (bytes: Buffer) => void upstream.write(bytes));
    upstream.on('data', (bytes: Buffer) => {
      if (!isDroppingReplies) client.write(bytes);
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    if (paused) for (const socket of [client, upstream]) socket.pause();
  });
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  const close = async () => {
    const closed = server.listening ? once(server, 'close') : undefined;
    if (closed) server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  onTestFinished(close);

  return {
    port,
    pause() {
      paused = true;
      for (const socket of sockets) socket.pause();
    },
    silence() {
      for (const socket of sockets) socket.pause();
    },
    dropReplies() {
      isDroppingReplies = true;
    },
    reject: close,
    redirect(to) {
      targetPort = to;
    },
    async resume() {
      paused = false;
      isDroppingReplies = false;
      for (const socket of sockets) socket.resume();
      if (!server.listening) await listen(port);
    },
  };
}
