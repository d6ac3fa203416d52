{{/*
Names and labels. Each chart defines `library.ownLabels` (its labels, as YAML). Every text is quoted:
a release may be named `1234` or `1e10`, which YAML would read as a number.
*/}}

{{/*
The chart's name, or what replaces it, as the value of a label. A chart that is part of another is named
as that one names it, an alias in any letters, after the parts that contain it. A name that is no value
of a label, or that joins two parts or more, ends in a hash of the whole, so that two parts keep two
names: `eu-west` is another one than `west` in `eu`. Takes the root.
*/}}
{{- define "library.name" -}}
{{- $path := .Template.BasePath | trimSuffix "/templates" | splitList "/charts/" | rest | join "/" -}}
{{- $name := .Values.nameOverride | default $path | default .Chart.Name -}}
{{- if regexMatch "^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$" $name -}}
{{- $name -}}
{{- else -}}
{{- $joined := trunc 54 $name | replace "/" "-" -}}
{{- regexReplaceAll "^[^A-Za-z0-9]+" (printf "%s-%s" $joined (sha256sum $name | trunc 8)) "" -}}
{{- end -}}
{{- end -}}

{{/*
The full name, with which every name begins: at most 40 characters, which leaves 23 for what is added
to it. A Service's name begins with a small letter and has no dots. A name that must change for one of
these rules ends in a hash of the whole, so that two releases keep two names. A release that is named
after the chart gives it its name; not as part of another chart, which may contain this one twice.
Takes the root.
*/}}
{{- define "library.fullname" -}}
{{- $name := include "library.name" . -}}
{{- $isPart := contains "/charts/" .Template.BasePath -}}
{{- $isNamed := and (not $isPart) (contains (trimPrefix "org-api-" $name) .Release.Name) -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) $isNamed -}}
{{- $full = default $full .Values.fullnameOverride -}}
{{- if regexMatch "^[a-z][a-z0-9-]{0,39}$" $full -}}
{{- $full -}}
{{- else -}}
{{- $start := regexMatch "^[a-z]" $full | ternary "" "r" -}}
{{- $valid := regexReplaceAll "[^a-z0-9-]" (printf "%s%s" $start $full | lower) "-" -}}
{{- $valid | trunc 31 | trimSuffix "-" }}-{{ sha256sum $full | trunc 8 -}}
{{- end -}}
{{- end -}}

{{/*
The name of a component's objects; the full name for a chart with one, unless it could be that of
another chart's component. Takes {root, component}.
*/}}
{{- define "library.componentName" -}}
{{- $full := include "library.fullname" .root -}}
{{- $isLikeAnother := regexMatch "-(api|console|worker|migrations|probe)$" $full -}}
{{- if and (eq .component "operator") (not $isLikeAnother) -}}
{{- $full -}}
{{- else -}}
{{- printf "%s-%s" $full .component -}}
{{- end -}}
{{- end -}}

{{/* This release among all whose series the rules meet. Takes the root. */}}
{{- define "library.installation" -}}
{{- with .Values.monitoring.cluster }}{{ . }}/{{ end -}}
{{ .Release.Namespace }}/{{ include "library.fullname" . }}
{{- end -}}

{{/* What selectors match and nothing else: these labels can never change. Takes {root, component}. */}}
{{- define "library.selectorLabels" -}}
app.kubernetes.io/name: {{ include "library.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end -}}

{{/* Labels of an object. Takes {root, component}. A label may not repeat; these win over commonLabels. */}}
{{- define "library.labels" -}}
{{- $labels := include "library.selectorLabels" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "org-api" -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 -}}
{{- $_ := set $labels "helm.sh/chart" (regexReplaceAll "^[^A-Za-z0-9]+|[^A-Za-z0-9]+$" $chart "") -}}
{{- $common := .root.Values.commonLabels | default dict -}}
{{- merge $labels (include "library.ownLabels" .root | fromYaml) $common | toYaml -}}
{{- end -}}

{{/*
Labels of a pod, without the chart's version: a new chart alone restarts no pod.
Takes {root, component, own}: `own` are more labels.
*/}}
{{- define "library.podLabels" -}}
{{- $labels := include "library.selectorLabels" . | fromYaml -}}
{{- $common := .root.Values.commonLabels | default dict -}}
{{- merge $labels (include "library.ownLabels" .root | fromYaml) (.own | default dict) $common | toYaml -}}
{{- end -}}

{{/* Name, namespace, labels and annotations of a component's object. Takes {root, component, annotations}. */}}
{{- define "library.metadata" -}}
name: {{ include "library.componentName" . | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "library.labels" . | nindent 2 }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The image: by tag, by digest or by both; by the chart's appVersion without either. Takes the root. */}}
{{- define "library.image" -}}
{{- $image := .Values.image -}}
{{- $tag := empty $image.digest | ternary (default .Chart.AppVersion $image.tag) $image.tag -}}
{{- $image.repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end -}}
