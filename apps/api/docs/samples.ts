import type { Read } from './document.ts';

/** The languages of the samples: `id` is in the page and the Markdown's fence. */
export const languages = [
  { id: 'curl', name: 'curl', fence: 'sh' },
  { id: 'typescript', name: 'TypeScript', fence: 'ts' },
  { id: 'python', name: 'Python', fence: 'py' },
  { id: 'go', name: 'Go', fence: 'go' },
  { id: 'java', name: 'Java', fence: 'java' },
] as const;

export type Language = (typeof languages)[number]['id'];

/** Returns the shell lines that every sample assumes. */
export function environmentSample(keyPrefix: string, orgId: string, baseUrl: string): string {
  return [
    `export ORG_API_KEY='${keyPrefix}…'`,
    `export ORG_ID='${orgId}'`,
    `export ORG_API_BASE_URL='${baseUrl}'`,
  ].join('\n');
}

/**
 * Returns the complete program of a read in each language, the one source of the page, the Markdown and the tests
 * that run them. Each takes the variables of `environmentSample` and prints the response. TypeScript and Python use the
 * clients, the others what their language has.
 */
export function samples({ id, path }: Pick<Read, 'id' | 'path'>): Record<Language, string> {
  const [start = '', end = ''] = path.split('{orgId}');
  return {
    curl: `\
curl --fail-with-body \\
  -H "Authorization: Bearer $ORG_API_KEY" \\
  "$ORG_API_BASE_URL${start}$ORG_ID${end}"`,
    typescript: `\
import { OrgApi } from '@org-api/client';

const api = new OrgApi(); // reads ORG_API_KEY
const { data } = await api.${id}(process.env.ORG_ID!);
console.log(JSON.stringify(data));`,
    python: `\
import json, os
from org_api import OrgApi

api = OrgApi()  # reads ORG_API_KEY
response = api.${toSnakeCase(id)}(os.environ["ORG_ID"])
print(json.dumps(response.data))`,
    go: goSample(start, end),
    java: javaSample(start, end),
  };
}

const toSnakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const goSample = (start: string, end: string): string => `\
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	url := os.Getenv("ORG_API_BASE_URL") + "${start}" + os.Getenv("ORG_ID")${end && ` + "${end}"`}
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("ORG_API_KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		log.Fatal(response.Status, " ", string(body), err)
	}
	fmt.Println(string(body))
}`;

const javaSample = (start: string, end: string): string => `\
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

public class Main {
    public static void main(String[] args) throws Exception {
        var url = System.getenv("ORG_API_BASE_URL")
            + "${start}" + System.getenv("ORG_ID")${end && ` + "${end}"`};
        var request = HttpRequest.newBuilder(URI.create(url))
            .header("Authorization", "Bearer " + System.getenv("ORG_API_KEY"))
            .build();
        var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
        if (response.statusCode() != 200) throw new IllegalStateException(response.body());
        System.out.println(response.body());
    }
}`;
