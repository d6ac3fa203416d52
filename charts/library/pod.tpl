{{/*
Parts of every pod. Each takes {root, component, own}: `own` is the component's section of the values.
Each chart defines `library.env`, `library.volumes` and `library.volumeMounts`: lists as
YAML that may be empty.
*/}}

{{/* The ServiceAccount of a component's pods. */}}
{{- define "library.serviceAccount" -}}
{{- default (include "library.componentName" .) .own.serviceAccount.name -}}
{{- end -}}

{{/* A ServiceAccount, unless the values name another. */}}
{{- define "library.serviceAccountObject" -}}
{{- if .own.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "library.serviceAccount" . | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
  {{- with .own.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end -}}

{{/* Fields of the pod's spec that are the same everywhere. */}}
{{- define "library.podSpec" -}}
serviceAccountName: {{ include "library.serviceAccount" . | quote }}
automountServiceAccountToken: {{ has .component (list "operator" "uninstall") }}
# Variables such as ORG_API_PORT, which Kubernetes would add for the release's own Services, are settings of org-api.
enableServiceLinks: false
{{- with .root.Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $volumes := concat (include "library.volumes" . | fromYamlArray) (.own.extraVolumes | default list) }}
{{- with $volumes }}
volumes:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
The probe that ends when a process listens. On a busy node that can take minutes, and a process that
is killed before would never start. Takes the port.
*/}}
{{- define "library.startupProbe" -}}
httpGet: {path: /livez, port: {{ . }}}
periodSeconds: 1
timeoutSeconds: 2
failureThreshold: 300
{{- end -}}

{{/* Where the pods of a Deployment run: over zones and nodes as far as these allow it. */}}
{{- define "library.spread" -}}
topologySpreadConstraints:
  {{- if .own.topologySpreadConstraints }}
  {{- toYaml .own.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "library.selectorLabels" $ | nindent 8 }}
    # Pods of one version are spread among themselves; old ones, which leave, do not count.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
{{- end -}}

{{/* Fields of the container that are the same everywhere. */}}
{{- define "library.container" -}}
image: {{ include "library.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy | quote }}
{{- with .root.Values.containerSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
env:
  {{- concat (include "library.env" . | fromYamlArray) (.own.extraEnv | default list) | toYaml | nindent 2 }}
{{- with .own.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat (include "library.volumeMounts" . | fromYamlArray) (.own.extraVolumeMounts | default list) }}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A PodDisruptionBudget. */}}
{{- define "library.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "library.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .own.podDisruptionBudget.maxUnavailable }}
  # A pod that is not ready serves no one: a broken version must not keep nodes from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "library.selectorLabels" . | nindent 6 }}
{{- end -}}

{{/*
Problems of the section, a line each. Takes also `set`, a map whose keys are the settings that the
chart writes itself.
*/}}
{{- define "library.podProblems" -}}
{{- $fixed := list "HOST" "PORT" "METRICS_PORT" -}}
{{- $section := eq .component "operator" | ternary "" (printf "%s." .component) -}}
{{- range .own.extraEnv }}
{{- $name := trimSuffix "_FILE" .name }}
{{- if hasKey $.set $name }}
- {{ $section }}extraEnv sets {{ .name }}, which the chart sets itself: use its value instead
{{- else if has $name $fixed }}
- {{ $section }}extraEnv sets {{ .name }}, which ports and probes of the pod and its Services rely on: remove it
{{- else if has (upper $name) (list "HTTP_PROXY" "HTTPS_PROXY" "ALL_PROXY" "GRPC_PROXY" "NODE_USE_ENV_PROXY") }}
- {{ $section }}extraEnv sets {{ .name }}, but org-api connects to its servers and to receivers directly, without a
{{- " proxy: remove it, and let the network route or allow these connections" }}
{{- end }}
{{- end }}
{{- if not (or .own.serviceAccount.create .own.serviceAccount.name) }}
- {{ $section }}serviceAccount.name is empty beside {{ $section }}serviceAccount.create false: name the
{{- " account that exists" }}
{{- end }}
{{- end -}}
