// Scenarios.java - the Java client against a broker: one method a scenario, run by name or all; prints "ok NAME" for each that holds.
//   java -cp 'lib/*' src/Scenarios.java pulsar://127.0.0.1:6650 [NAME...]
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;

public class Scenarios {
    static PulsarClient client;
    static String run = Long.toString(System.nanoTime(), 36);

    static void check(boolean holds, String what) {
        if (!holds)
            throw new AssertionError(what);
    }

    static String topic(String name) {
        return "persistent://public/default/java-" + name + "-" + run;
    }

    static String text(Message<byte[]> message) {
        return new String(message.getData(), StandardCharsets.UTF_8);
    }

    static ConsumerBuilder<byte[]> consumer(String topic, SubscriptionType type) {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type).receiverQueueSize(10)
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS);
    }

    static void send(String topic, int count, int keys) throws Exception {
        try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
            for (int i = 0; i < count; i++) {
                TypedMessageBuilder<byte[]> message = producer.newMessage().value(("m" + i).getBytes()).property("n", "" + i);
                (keys > 0 ? message.key("k" + i % keys) : message).send();
            }
        }
    }

    // Receives until nothing comes for a second, acknowledging all.
    static List<Message<byte[]>> drain(Consumer<byte[]> consumer) throws Exception {
        List<Message<byte[]>> got = new ArrayList<>();
        for (Message<byte[]> m = consumer.receive(2, TimeUnit.SECONDS); m != null; m = consumer.receive(1, TimeUnit.SECONDS)) {
            got.add(m);
            consumer.acknowledge(m);
        }
        return got;
    }

    static List<String> texts(List<Message<byte[]>> messages) {
        return messages.stream().map(Scenarios::text).toList();
    }

    static List<String> expected(int count) {
        List<String> all = new ArrayList<>();
        for (int i = 0; i < count; i++)
            all.add("m" + i);
        return all;
    }

    public static void exclusive() throws Exception {
        String topic = topic("exclusive");
        try (Consumer<byte[]> first = consumer(topic, SubscriptionType.Exclusive).subscribe()) {
            try {
                consumer(topic, SubscriptionType.Exclusive).subscribe().close();
                check(false, "a second exclusive consumer was let in");
            } catch (PulsarClientException.ConsumerBusyException expected) {
            }
            send(topic, 50, 0);
            check(texts(drain(first)).equals(expected(50)), "all in order");
        }
        try (Consumer<byte[]> again = consumer(topic, SubscriptionType.Exclusive).subscribe()) {
            check(drain(again).isEmpty(), "nothing acknowledged comes again");
        }
    }

    public static void failover() throws Exception {
        String topic = topic("failover");
        Consumer<byte[]> a = consumer(topic, SubscriptionType.Failover).consumerName("a").priorityLevel(0).subscribe();
        Consumer<byte[]> b = consumer(topic, SubscriptionType.Failover).consumerName("b").priorityLevel(1).subscribe();
        send(topic, 20, 0);
        check(texts(drain(a)).equals(expected(20)), "the one of the lower priority number gets all");
        check(b.receive(200, TimeUnit.MILLISECONDS) == null, "the other waits");
        a.close();
        send(topic, 20, 0);
        check(texts(drain(b)).equals(expected(20)), "the other takes over");
        b.close();
    }

    public static void shared() throws Exception {
        String topic = topic("shared");
        Consumer<byte[]> a = consumer(topic, SubscriptionType.Shared).subscribe();
        Consumer<byte[]> b = consumer(topic, SubscriptionType.Shared).subscribe();
        send(topic, 60, 0);
        List<String> fromA = texts(drain(a)), fromB = texts(drain(b));
        check(!fromA.isEmpty() && !fromB.isEmpty(), "both get some");
        Set<String> all = new HashSet<>(fromA);
        all.addAll(fromB);
        check(all.size() == 60 && fromA.size() + fromB.size() == 60, "each once");
        a.close();
        b.close();
    }

    public static void sharedRedelivery() throws Exception {
        String topic = topic("redelivery");
        try (Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe()) {
            send(topic, 3, 0);
            for (int i = 0; i < 3; i++)
                c.negativeAcknowledge(c.receive(5, TimeUnit.SECONDS));
            List<Message<byte[]>> again = drain(c);
            check(again.size() == 3, "all come again");
            for (Message<byte[]> m : again)
                check(m.getRedeliveryCount() == 1, "their redelivery count is 1, not " + m.getRedeliveryCount());
        }
    }

    public static void deadLetter() throws Exception {
        String topic = topic("dead-letter"), letters = topic + "-DLQ";
        DeadLetterPolicy policy = DeadLetterPolicy.builder().maxRedeliverCount(2).deadLetterTopic(letters).initialSubscriptionName("look").build();
        try (Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).deadLetterPolicy(policy).subscribe()) {
            send(topic, 2, 0);
            for (int i = 0; i < 6; i++)
                c.negativeAcknowledge(c.receive(10, TimeUnit.SECONDS));
            check(c.receive(2, TimeUnit.SECONDS) == null, "after the last allowed round it is a dead letter");
            try (Consumer<byte[]> look = client.newConsumer().topic(letters).subscriptionName("look").subscribe()) {
                check(new HashSet<>(texts(drain(look))).equals(new HashSet<>(expected(2))), "both are in the dead-letter topic");
            }
        }
    }

    public static void keyShared() throws Exception {
        String topic = topic("key-shared");
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        for (int i = 0; i < 3; i++)
            consumers.add(consumer(topic, SubscriptionType.Key_Shared).receiverQueueSize(1000).subscribe());
        send(topic, 300, 20);
        Map<String, Integer> owner = new HashMap<>();
        Map<String, Integer> last = new HashMap<>();
        int count = 0;
        for (int i = 0; i < 3; i++)
            for (Message<byte[]> m : drain(consumers.get(i))) {
                check(owner.computeIfAbsent(m.getKey(), k -> -1) == -1 || owner.get(m.getKey()) == i, "a key at one consumer");
                owner.put(m.getKey(), i);
                int n = Integer.parseInt(m.getProperty("n"));
                check(last.getOrDefault(m.getKey(), -1) < n, "in order per key");
                last.put(m.getKey(), n);
                count++;
            }
        check(count == 300, "all, not " + count);
        for (Consumer<byte[]> c : consumers)
            c.close();
    }

    public static void keySharedSticky() throws Exception {
        String topic = topic("sticky");
        Consumer<byte[]> low = consumer(topic, SubscriptionType.Key_Shared).keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(Range.of(0, 32767))).subscribe();
        Consumer<byte[]> high = consumer(topic, SubscriptionType.Key_Shared).keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(Range.of(32768, 65535))).subscribe();
        try {
            consumer(topic, SubscriptionType.Key_Shared).keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(Range.of(100, 200))).subscribe().close();
            check(false, "overlapping ranges were let in");
        } catch (PulsarClientException.ConsumerAssignException expected) {
        }
        send(topic, 100, 50);
        int a = drain(low).size(), b = drain(high).size();
        check(a > 0 && b > 0 && a + b == 100, "both ranges: " + a + " and " + b);
        low.close();
        high.close();
    }

    public static void batchIndexAcks() throws Exception {
        String topic = topic("batch-index");
        try (Producer<byte[]> p = client.newProducer().topic(topic).batchingMaxMessages(10).batchingMaxPublishDelay(1, TimeUnit.SECONDS).create()) {
            ConsumerBuilder<byte[]> builder = consumer(topic, SubscriptionType.Shared).enableBatchIndexAcknowledgment(true);
            Consumer<byte[]> c = builder.subscribe();
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (int i = 0; i < 10; i++)
                sent.add(p.sendAsync(("m" + i).getBytes()));
            for (CompletableFuture<MessageId> each : sent)
                each.get();
            for (int i = 0; i < 10; i++) {
                Message<byte[]> m = c.receive(5, TimeUnit.SECONDS);
                if (i % 2 == 0)
                    c.acknowledge(m);
            }
            c.close();
            try (Consumer<byte[]> again = builder.subscribe()) {
                check(texts(drain(again)).equals(List.of("m1", "m3", "m5", "m7", "m9")), "only what was not acknowledged comes again");
            }
        }
    }

    public static void keysAndProperties() throws Exception {
        String topic = topic("properties");
        try (Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe(); Producer<byte[]> p = client.newProducer().topic(topic).create()) {
            p.newMessage().key("schlüssel").orderingKey("o".getBytes()).property("ключ", "значение").eventTime(12345).value("v".getBytes()).send();
            Message<byte[]> m = c.receive(5, TimeUnit.SECONDS);
            check(m.getKey().equals("schlüssel") && new String(m.getOrderingKey()).equals("o"), "keys");
            check(m.getProperty("ключ").equals("значение") && m.getEventTime() == 12345, "property and event time");
            check(m.getProducerName().equals(p.getProducerName()) && m.getSequenceId() == 0, "producer and sequence id");
            c.acknowledge(m);
        }
    }

    public static void delayed() throws Exception {
        String topic = topic("delayed");
        try (Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).subscribe(); Producer<byte[]> p = client.newProducer().topic(topic).create()) {
            long began = System.currentTimeMillis();
            p.newMessage().value("late".getBytes()).deliverAfter(3, TimeUnit.SECONDS).send();
            p.newMessage().value("now".getBytes()).send();
            Message<byte[]> first = c.receive(2, TimeUnit.SECONDS);
            check(first != null && text(first).equals("now"), "one without a delay passes it");
            Message<byte[]> late = c.receive(10, TimeUnit.SECONDS);
            long waited = System.currentTimeMillis() - began;
            check(late != null && text(late).equals("late") && waited >= 2000, "not before its time: " + waited);
            c.acknowledge(first);
            c.acknowledge(late);
            check(c.receive(1, TimeUnit.SECONDS) == null, "once");
        }
    }

    public static void reader() throws Exception {
        String topic = topic("reader");
        try (Reader<byte[]> empty = client.newReader().topic(topic).startMessageId(MessageId.earliest).create()) {
            check(!empty.hasMessageAvailable(), "an empty topic has nothing");
            send(topic, 5, 0);
            for (int i = 0; i < 5; i++)
                check(empty.hasMessageAvailable() && text(empty.readNext(5, TimeUnit.SECONDS)).equals("m" + i), "message " + i);
            check(!empty.hasMessageAvailable(), "then nothing");
            empty.seek(System.currentTimeMillis() + 3600_000);
            check(!empty.hasMessageAvailable(), "nothing behind a time to come");
            empty.seek(MessageId.earliest);
            check(empty.hasMessageAvailable() && text(empty.readNext(5, TimeUnit.SECONDS)).equals("m0"), "from the start again");
        }
    }

    public static void tableView() throws Exception {
        String topic = topic("table");
        try (Producer<byte[]> p = client.newProducer().topic(topic).create()) {
            for (int i = 0; i < 30; i++)
                p.newMessage().key("k" + i % 3).value(("v" + i).getBytes()).send();
            try (TableView<byte[]> table = client.newTableView(Schema.BYTES).topic(topic).create()) {
                check(table.size() == 3 && new String(table.get("k2")).equals("v29"), "the last value of each key");
                p.newMessage().key("k2").value("new".getBytes()).send();
                for (int i = 0; i < 100 && !new String(table.get("k2")).equals("new"); i++)
                    Thread.sleep(50);
                check(new String(table.get("k2")).equals("new"), "it follows");
            }
        }
    }

    public static void seekAndCumulative() throws Exception {
        String topic = topic("seek");
        try (Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe()) {
            send(topic, 10, 0);
            MessageId fifth = null;
            for (int i = 0; i < 10; i++) {
                Message<byte[]> m = c.receive(5, TimeUnit.SECONDS);
                if (i == 4)
                    fifth = m.getMessageId();
            }
            c.acknowledgeCumulative(fifth);
            c.seek(fifth);
            check(text(c.receive(5, TimeUnit.SECONDS)).equals("m5"), "behind the fifth");
        }
    }

    public static void chunks() throws Exception {
        String topic = topic("chunks");
        byte[] large = new byte[12 << 20];
        new Random(1).nextBytes(large);
        try (Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).subscribe();
             Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false).enableChunking(true).create()) {
            p.send(large);
            Message<byte[]> m = c.receive(20, TimeUnit.SECONDS);
            check(m != null && Arrays.equals(m.getData(), large), "put together again");
            c.acknowledge(m);
        }
    }

    public static void accessModes() throws Exception {
        String topic = topic("access");
        Producer<byte[]> first = client.newProducer().topic(topic).accessMode(ProducerAccessMode.Exclusive).create();
        try {
            client.newProducer().topic(topic).create().close();
            check(false, "a second producer beside an exclusive one");
        } catch (PulsarClientException.ProducerBusyException expected) {
        }
        CompletableFuture<Producer<byte[]>> waiting = client.newProducer().topic(topic).accessMode(ProducerAccessMode.WaitForExclusive).createAsync();
        Thread.sleep(200);
        check(!waiting.isDone(), "it waits");
        first.close();
        Producer<byte[]> second = waiting.get(10, TimeUnit.SECONDS);
        Producer<byte[]> third = client.newProducer().topic(topic).accessMode(ProducerAccessMode.ExclusiveWithFencing).create();
        third.send("x".getBytes());
        try {
            second.send("y".getBytes());
            check(false, "a fenced producer may not send");
        } catch (PulsarClientException.ProducerFencedException expected) {
        }
        third.close();
    }

    public static void patterns() throws Exception {
        String base = "java-pattern-" + run;
        send("persistent://public/default/" + base + "-a", 3, 0);
        try (Consumer<byte[]> c = client.newConsumer().topicsPattern("persistent://public/default/" + base + "-.*").subscriptionName("s")
                 .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS).subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            check(drain(c).size() == 3, "the topic that was there");
            send("persistent://public/default/" + base + "-b", 3, 0);
            List<Message<byte[]>> got = new ArrayList<>();
            for (int i = 0; i < 10 && got.size() < 3; i++)
                got.addAll(drain(c));
            check(got.size() == 3, "and the new one");
        }
    }

    static boolean scenario(Method m) {
        return Modifier.isPublic(m.getModifiers()) && m.getParameterCount() == 0 && m.getReturnType() == void.class;
    }

    public static void main(String[] args) throws Exception {
        client = PulsarClient.builder().serviceUrl(args[0]).build();
        List<String> wanted = Arrays.asList(args).subList(1, args.length);
        boolean good = true;
        for (Method m : Scenarios.class.getDeclaredMethods()) {
            if (!scenario(m) || (!wanted.isEmpty() && !wanted.contains(m.getName())))
                continue;
            try {
                m.invoke(null);
                System.out.println("ok " + m.getName());
            } catch (InvocationTargetException e) {
                good = false;
                System.out.println("FAILED " + m.getName() + ": " + e.getCause());
            }
        }
        client.close();
        System.exit(good ? 0 : 1);
    }
}
