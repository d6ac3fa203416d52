{{/* The parts of this release, and their public names. Names and labels of objects are in _library.tpl. */}}

{{- define "org-api.ownLabels" -}}
org-api/region: {{ .Values.region | quote }}
{{- end -}}

{{/* The Deployments there are, as words. */}}
{{- define "org-api.components" -}}
api worker{{ if .Values.console.enabled }} console{{ end }}
{{- end -}}

{{/* All that has pods, as words. */}}
{{- define "org-api.podComponents" -}}
{{ include "org-api.components" . }}{{ if .Values.migrations.enabled }} migrations{{ end }}
{{- if .Values.probe.enabled }} probe{{ end }}
{{- end -}}

{{/* The Deployments that people and partners call. */}}
{{- define "org-api.httpComponents" -}}
api{{ if .Values.console.enabled }} console{{ end }}
{{- end -}}

{{/* The least number of pods that a Deployment has. Takes {app}. */}}
{{- define "org-api.leastReplicas" -}}
{{- if .app.autoscaling.enabled -}}{{ .app.autoscaling.minReplicas | int }}
{{- else -}}{{ kindIs "invalid" .app.replicas | ternary 2 .app.replicas | int }}
{{- end -}}
{{- end -}}

{{/* The public URL of a component. Takes {root, component}. */}}
{{- define "org-api.url" -}}
{{- if eq .component "console" -}}{{ .root.Values.console.url }}
{{- else -}}{{ get .root.Values.baseUrls .root.Values.region }}
{{- end -}}
{{- end -}}

{{/* Its host name, without the port. Takes {root, component}. */}}
{{- define "org-api.host" -}}
{{- get (include "org-api.url" . | urlParse) "hostname" -}}
{{- end -}}
