// Use every operation through openapi-generator's Go client: BASE_URL SCRIPTED_ORIGIN NAMES, $API_KEY.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"time"

	api "github.com/GIT_USER_ID/GIT_REPO_ID"
)

var (
	next   = regexp.MustCompile(`<([^>]+)>; *rel="next"`)
	errors = map[int]any{}
)

func connect(base, key string) (*api.PetsAPIService, context.Context) {
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: base}}
	return api.NewAPIClient(configuration).PetsAPI, context.WithValue(context.Background(), api.ContextAccessToken, key)
}

func must[T any](value T, response *http.Response, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func note(response *http.Response, err error) {
	failure, found := err.(*api.GenericOpenAPIError)
	if !found {
		panic(fmt.Sprint("no error of the API: ", err))
	}
	var body map[string]any
	json.Unmarshal(failure.Body(), &body)
	errors[response.StatusCode] = body["code"]
}

func values(pets ...api.Pet) (found []any) {
	for _, pet := range pets {
		found = append(found, []any{pet.Id, pet.Name, pet.CategoryId})
	}
	return
}

func main() {
	base, scripted, key := os.Args[1], os.Args[2], os.Getenv("API_KEY")
	var names []string
	json.Unmarshal([]byte(os.Args[3]), &names)
	client, ctx := connect(base, key)
	create := func(name string, category int64) api.ApiCreatePetRequest {
		return client.CreatePet(ctx).PetInput(*api.NewPetInput(name, category))
	}

	var created, listed []api.Pet
	for _, name := range names {
		created = append(created, *must(create(name, 1<<53+1).Execute()))
	}
	idempotencyKey := fmt.Sprint("go-", time.Now().UnixNano())
	must(create("Mia", 1).IdempotencyKey(idempotencyKey).Execute())
	_, response, err := create("Leo", 1).IdempotencyKey(idempotencyKey).Execute()
	note(response, err)
	_, response, err = client.ListPets(ctx).Cursor("made-up").Execute()
	note(response, err)
	stranger, wrong := connect(base, "x")
	_, response, err = stranger.ListPets(wrong).Execute()
	note(response, err)
	tooLarge, ctx413 := connect(scripted+"/413", key)
	_, response, err = tooLarge.CreatePet(ctx413).PetInput(*api.NewPetInput("Rex", 1)).Execute()
	note(response, err)
	for _, status := range []int{429, 503} {
		failing, with := connect(fmt.Sprint(scripted, "/", status), key)
		_, response, err = failing.ListPets(with).Execute()
		note(response, err)
	}
	for cursor, more := "", true; more; {
		request := client.ListPets(ctx).Limit(2)
		if cursor != "" {
			request = request.Cursor(cursor)
		}
		page, response, err := request.Execute()
		listed = append(listed, must(page, response, err)...)
		link := next.FindStringSubmatch(response.Header.Get("Link"))
		if more = link != nil; more {
			address, _ := url.Parse(link[1])
			cursor = address.Query().Get("cursor")
		}
	}
	newer, newerCtx := connect(scripted+"/newer", key)
	result, _ := json.Marshal(map[string]any{
		"created": values(created...),
		"listed":  values(listed...),
		"newer":   values(must(newer.ListPets(newerCtx).Execute())...),
		"errors":  errors,
	})
	fmt.Println(string(result))
}
