import animalstore.ApiClient;
import animalstore.ApiException;
import animalstore.ApiResponse;
import animalstore.api.KeysApi;
import animalstore.api.OrdersApi;
import animalstore.api.PetsApi;
import animalstore.model.*;
import animalstore.model.Error;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Scenario {
    static final long CATEGORY = 7;
    static final Pattern NEXT = Pattern.compile("[?&]cursor=([^&>]+)[^>]*>; rel=\"next\"");

    static ApiClient connect(String key) {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("ANIMALSTORE_URL"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + key));
        return client;
    }

    public static void main(String[] args) throws Exception {
        ApiClient client = connect(System.getenv("ANIMALSTORE_API_KEY"));
        PetsApi pets = new PetsApi(client);
        Pet removed = changePets(pets, new OrdersApi(client));
        listAllPages(pets);

        Error gone = errorOf(404, () -> pets.getPet(removed.getId(), null, null));
        check(gone.getCode().equals("pet_not_found"), gone);

        exceedLimit(new KeysApi(client));
    }

    /** Creates, lists, gets, changes, orders and deletes pets. */
    static Pet changePets(PetsApi pets, OrdersApi orders) throws ApiException {
        List<Pet> created = new ArrayList<>();
        for (String name : List.of("Ada", "Bo", "Cleo", "Dot", "Eve")) {
            created.add(pets.createPet(new NewPet().name(name).categoryId(CATEGORY), null));
        }
        Pet ada = created.get(0), bo = created.get(1);
        List<Pet> both = pets.listPets(null, PetStatus.AVAILABLE, null, List.of(ada.getId(), bo.getId()), null, null, null, null);
        check(both.equals(List.of(bo, ada)), both);
        check(pets.getPet(ada.getId(), null, null).equals(ada), ada);

        Pet renamed = pets.updatePet(ada.getId(), new PetPatch().name("Ada L."), null);
        check(renamed.getName().equals("Ada L."), renamed);
        Order order = orders.placeOrder(new NewOrder().petId(ada.getId()), null);
        check(order.getCreatedAt().isBefore(OffsetDateTime.now().plusDays(1)), order);
        Order cancelled = orders.updateOrder(order.getId(), new OrderPatch().status(OrderStatus.CANCELLED), null);
        check(cancelled.getStatus() == OrderStatus.CANCELLED, cancelled);
        check(pets.deletePetWithHttpInfo(ada.getId(), null).getStatusCode() == 204, ada);
        return ada;
    }

    /** Follows the cursor in the Link header. */
    static void listAllPages(PetsApi pets) throws ApiException {
        List<String> names = new ArrayList<>();
        String cursor = null;
        do {
            ApiResponse<List<Pet>> page = pets.listPetsWithHttpInfo(2, null, CATEGORY, null, null, cursor, null, null);
            page.getData().forEach(pet -> names.add(pet.getName()));
            Matcher next = NEXT.matcher(page.getHeaders().get("link").get(0));
            cursor = next.find() ? next.group(1) : null;
        } while (cursor != null);
        check(names.equals(List.of("Eve", "Dot", "Cleo", "Bo")), names);
    }

    /** Creates a key with one request a minute and makes two with it. */
    static void exceedLimit(KeysApi keys) throws Exception {
        KeyWithSecret key = keys.createKey(new NewKey().name("limited").plan(Plan.ENTERPRISE)
            .limits(new KeyLimits().perMinute(1L).perDay(10L)).expiresAt(OffsetDateTime.parse("2099-01-01T00:00:00Z")));
        check(key.getExpiresAt() != null, key);
        Key forever = keys.updateKey(key.getId(), new KeyPatch().expiresAt(null), null);
        check(forever.getExpiresAt() == null, forever);

        PetsApi limited = new PetsApi(connect(key.getSecret()));
        limited.listPets(null, null, null, null, null, null, null, null);
        Error refused = errorOf(429, () -> limited.listPets(null, null, null, null, null, null, null, null));
        check(refused.getCode().equals("rate_limit_exceeded"), refused);
    }

    interface Call {
        void run() throws ApiException;
    }

    /** Returns the error that a call gets, which must have this status. */
    static Error errorOf(int status, Call call) throws Exception {
        try {
            call.run();
        } catch (ApiException e) {
            check(e.getCode() == status, e);
            check(status != 429 || e.getResponseHeaders().firstValue("Retry-After").isPresent(), e);
            return ApiClient.createDefaultObjectMapper().readValue(e.getResponseBody(), Error.class);
        }
        throw new AssertionError("want status " + status);
    }

    static void check(boolean ok, Object got) {
        if (!ok) {
            throw new AssertionError("got " + got);
        }
    }
}
