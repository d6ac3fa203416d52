import { KubeConfig, type RequestContext } from '@kubernetes/client-node';

type CreateDispatcherOptions = KubeConfig['createDispatcherOptions'];
type Dispatcher = NonNullable<ReturnType<RequestContext['getDispatcher']>>;

/**
 * The library's configuration, with connections that are used again and closed when they are idle.
 * The library's own opens a connection for each request and keeps it. It is one of HTTP/2, on which
 * an aborted request can make Node send without end, in a loop that ends only when memory does.
 */
export class ReusedKubeConfig extends KubeConfig {
  #wanted = '';
  #kept: { options: string; dispatcher: Dispatcher } | undefined;

  override createDispatcherOptions(...given: Parameters<CreateDispatcherOptions>): ReturnType<CreateDispatcherOptions> {
    const options = super.createDispatcherOptions(...given);
    this.#wanted = JSON.stringify(options);
    return options.type === 'agent' ? { ...options, connect: { ...options.connect, ...onlyHttp1 } } : options;
  }

  override async applySecurityAuthentication(context: RequestContext): Promise<void> {
    await super.applySecurityAuthentication(context);
    const dispatcher = context.getDispatcher();
    if (dispatcher === undefined) return; // plain HTTP
    // Another certificate of the API server, whose file is read each time, needs other connections.
    if (this.#kept?.options !== this.#wanted) this.#kept = { options: this.#wanted, dispatcher };
    context.setDispatcher(this.#kept.dispatcher);
  }
}

/** Returns how the API server is reached: by the file, or by the pod's service account when null. */
export function readKubeConfig({ kubeconfigFile }: { kubeconfigFile: string | null }): KubeConfig {
  const kubeConfig = new ReusedKubeConfig();
  if (kubeconfigFile === null) kubeConfig.loadFromCluster();
  else kubeConfig.loadFromFile(kubeconfigFile);
  return kubeConfig;
}

/** An option of the connector that the library's types do not have. */
const onlyHttp1 = { allowH2: false };
