{{/*
Names and labels. Every name begins with the release's full name, and every selector has the
release's instance, so two releases in one namespace stay apart.
*/}}

{{/* The full name: at most 40 characters, which leaves 23 for what is added to it. */}}
{{- define "org-api.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* What selectors match and nothing else: these labels can never change. Takes {root, component}. */}}
{{- define "org-api.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object. Takes {root, component}. A label may not repeat; these win over commonLabels. */}}
{{- define "org-api.labels" -}}
{{- $labels := include "org-api.selectorLabels" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "org-api" -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $labels "org-api/region" .root.Values.region -}}
{{- merge $labels .root.Values.commonLabels | toYaml -}}
{{- end -}}

{{/*
Name, namespace, labels and annotations of a component's object. Takes {root, component}, and
`annotations` if it may have some.
*/}}
{{- define "org-api.metadata" -}}
name: {{ include "org-api.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "org-api.labels" . | nindent 2 }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Labels of a pod, without the chart's version: a new chart alone restarts no pod.
Takes {root, component, own}.
*/}}
{{- define "org-api.podLabels" -}}
{{- $labels := include "org-api.selectorLabels" . | fromYaml -}}
{{- $_ := set $labels "org-api/region" .root.Values.region -}}
{{- merge $labels .own .root.Values.commonLabels | toYaml -}}
{{- end -}}

{{- define "org-api.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- $digest := empty .Values.image.digest | ternary "" (printf "@%s" .Values.image.digest) -}}
{{- printf "%s:%s%s" .Values.image.repository $tag $digest -}}
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
