{{/* The name of every object but the metrics Service. */}}
{{- define "org-api-operator.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}

{{/* Labels of every object, which are what selectors match. */}}
{{- define "org-api-operator.labels" -}}
app.kubernetes.io/component: operator
app.kubernetes.io/instance: {{ toYaml .Release.Name }}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end -}}

{{- define "org-api-operator.metadata" -}}
name: {{ include "org-api-operator.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "org-api-operator.labels" . | nindent 2 }}
{{- end -}}
