{{/* The Service of a component's metrics. Takes {root, component}. */}}
{{- define "library.metricsService" -}}
# Metrics have a separate Service, so that no load balancer exposes them. Headless: Prometheus scrapes
# each pod.
apiVersion: v1
kind: Service
metadata:
  name: {{ include "library.componentName" . }}-metrics
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
    org-api/metrics: 'true'
spec:
  type: ClusterIP
  clusterIP: None
  # A pod that waits for the migrations is not ready, and its metrics are wanted.
  publishNotReadyAddresses: true
  selector:
    {{- include "library.selectorLabels" . | nindent 4 }}
  ports:
    - name: metrics
      port: 9090
      targetPort: metrics
      appProtocol: http
{{- end -}}

{{/*
A ServiceMonitor for all metrics Services of the release. Rules and dashboard find the release by the
labels that it adds. Takes {root, component, region, monitor}: `monitor` has interval and
labels. Without a timeout Prometheus takes its own, or the interval if that is shorter.
*/}}
{{- define "library.serviceMonitor" -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "library.fullname" .root | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- merge (include "library.labels" . | fromYaml) (.monitor.labels | default dict) | toYaml | nindent 4 }}
spec:
  selector:
    matchLabels:
      {{- $labels := include "library.selectorLabels" . | fromYaml }}
      {{- omit $labels "app.kubernetes.io/component" | toYaml | nindent 6 }}
      org-api/metrics: 'true'
  endpoints:
    - port: metrics
      path: /metrics
      interval: {{ .monitor.interval }}
      relabelings:
        - targetLabel: installation
          replacement: {{ include "library.installation" .root }}
        - targetLabel: region
          replacement: {{ .region }}
        - targetLabel: component
          sourceLabels: [__meta_kubernetes_service_label_app_kubernetes_io_component]
{{- end -}}

{{/*
A PrometheusRule. Takes {root, component, region, rules, groups}: `rules` has runbookBaseUrl, disabled
and labels, `groups` is what files of rules/ contain.
*/}}
{{- define "library.prometheusRule" -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ include "library.fullname" .root | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- merge (include "library.labels" . | fromYaml) (.rules.labels | default dict) | toYaml | nindent 4 }}
spec:
  groups:
    {{- $installation := include "library.installation" .root }}
    {{- range $group := .groups }}
    - name: {{ $group.name }}
      rules:
        {{- range $rule := $group.rules }}
        {{- if not (has $rule.alert ($.rules.disabled | default list)) }}
        {{- $labels := dict "installation" $installation "region" $.region }}
        {{- with $.root.Values.monitoring.cluster }}{{ $_ := set $labels "cluster" . }}{{ end }}
        {{- if eq $.component "operator" }}{{ $_ := set $labels "component" "operator" }}{{ end }}
        {{- $_ := set $rule "labels" (merge $labels ($rule.labels | default dict)) }}
        {{- if $rule.alert }}
        {{- $url := printf "%s/%s.md" (trimSuffix "/" $.rules.runbookBaseUrl) $rule.alert }}
        {{- $_ := set $rule.annotations "runbook_url" $url }}
        {{- end }}
        {{- toYaml (list $rule) | nindent 8 }}
        {{- end }}
        {{- end }}
    {{- end }}
{{- end -}}
