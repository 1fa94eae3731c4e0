package pullet;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** What {@link Configuration#as} should know of a record's component. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.RECORD_COMPONENT)
public @interface Setting {
    /**
     * Its key, one segment, where that is not its name.
     *
     * @return it; "" = the name
     */
    String value() default "";

    /**
     * What it is when the key is missing or null, as a text is in a configuration: "5432", "10s".
     *
     * @return it; "" = none: it must be there
     */
    String fallback() default "";

    /**
     * Whether a text such as 64KiB is a number of bytes.
     *
     * @return whether it is
     */
    boolean size() default false;
}
