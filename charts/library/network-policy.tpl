{{/*
One rule of a NetworkPolicy, as a list. Kubernetes reads a rule with an empty list of peers as all peers:
these charts read it as none, and write no rule. Every list of peers becomes a rule here.
Takes {direction, peers, ports}: `direction` is `from` or `to`.
*/}}
{{- define "library.peerRule" -}}
{{- if .peers -}}
{{- list (dict .direction .peers "ports" .ports) | toYaml -}}
{{- end -}}
{{- end -}}

{{/* What every pod may reach: the name servers. Takes the section networkPolicy. */}}
{{- define "library.dnsEgress" -}}
{{- $port := .dns.port | int -}}
{{- $ports := list (dict "port" $port "protocol" "UDP") (dict "port" $port "protocol" "TCP") -}}
{{- include "library.peerRule" (dict "direction" "to" "peers" .dns.to "ports" $ports) -}}
{{- end -}}

{{/* One server, at its port. Takes its section of networkPolicy. */}}
{{- define "library.serverEgress" -}}
{{- $ports := list (dict "port" (int .port)) -}}
{{- include "library.peerRule" (dict "direction" "to" "peers" .to "ports" $ports) -}}
{{- end -}}

{{/* Those who may connect to a named port of the pods. Takes {peers, port}. */}}
{{- define "library.ingressRule" -}}
{{- include "library.peerRule" (dict "direction" "from" "peers" .peers "ports" (list (dict "port" .port))) -}}
{{- end -}}

{{/*
Lists of peers without which the release cannot work, a line each. Takes {policy, lists}: the section
networkPolicy, and the lists as `server.to` in it.
*/}}
{{- define "library.peerProblems" -}}
{{- range .lists }}
{{- $path := splitList "." . }}
{{- if not (get (get $.policy (first $path)) (last $path)) }}
- networkPolicy.{{ . }} is empty: name the peers by ipBlock, namespaceSelector or podSelector; an empty
{{- " list allows no peer" }}
{{- end }}
{{- end }}
{{- end -}}
